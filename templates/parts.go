package templates

import "strings"

func fieldID(name string) string {
	return "f-" + strings.NewReplacer(".", "-", "[", "-", "]", "").Replace(name)
}

func orText(t string) string {
	if t == "" {
		return "text"
	}
	return t
}

func invalidWord(f Field) string {
	if f.Error != "" {
		return "true"
	}
	return "false"
}
