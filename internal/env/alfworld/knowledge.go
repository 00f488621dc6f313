package alfworld

import "strings"

// knowledge is what a player can know from the texts read so far; it never looks at the facts.
type knowledge struct {
	places   []string            // receptacles by name, in the order of the first look
	contents map[string][]string // of receptacles that were seen from inside or above
	at       string              // the receptacle gone to last
	held     string
	done     map[string]string // object -> last of clean, heat and cool
	used     map[string]bool   // lamps that were switched on
}

func newKnowledge(intro string) *knowledge {
	k := &knowledge{contents: map[string][]string{}, done: map[string]string{}, used: map[string]bool{}}
	_, list, ok := strings.Cut(intro, "Looking quickly around you, you see ")
	if ok {
		list, _, _ = strings.Cut(list, "\n")
		k.places = names(list)
	}
	return k
}

// names reads "a pen 1, and a mug 2." as names; "nothing" has none.
func names(list string) []string {
	list = strings.TrimSuffix(list, ".")
	if list == "nothing" || list == "" {
		return []string{}
	}
	out := strings.Split(list, ", ")
	for i, s := range out {
		out[i] = strings.TrimPrefix(strings.TrimPrefix(s, "and "), "a ")
	}
	return out
}

// classOf returns the class in a name: "pen 1" is a pen.
func classOf(name string) string {
	c, _, _ := strings.Cut(name, " ")
	return c
}

// observe learns from one command and its answer.
func (k *knowledge) observe(command, text string) {
	if strings.Contains(text, nothing) {
		return
	}
	k.read(text)
	verb, rest, _ := strings.Cut(command, " ")
	switch verb {
	case "go":
		k.at = strings.TrimPrefix(rest, "to ")
	case "take":
		if o, r, ok := strings.Cut(rest, " from "); ok {
			k.held = o
			k.remove(r, o)
		}
	case "move", "put":
		sep := " to "
		if verb == "put" {
			sep = " in/on "
		}
		if o, r, ok := strings.Cut(rest, sep); ok {
			k.held = ""
			if k.contents[r] == nil {
				k.contents[r] = []string{} // only what was put there is known, but it was open
			}
			k.contents[r] = append(k.contents[r], o)
		}
	case "clean", "heat", "cool":
		o, _, _ := strings.Cut(rest, " with ")
		if verb == "clean" {
			k.done["clean "+o] = verb
		} else {
			k.done[o] = verb
		}
	case "use":
		k.used[rest] = true
	}
}

func (k *knowledge) processed(o, process string) bool {
	if process == "clean" {
		return k.done["clean "+o] != ""
	}
	return k.done[o] == process
}

func (k *knowledge) remove(place, object string) {
	var left []string
	for _, o := range k.contents[place] {
		if o != object {
			left = append(left, o)
		}
	}
	if left == nil {
		left = []string{}
	}
	k.contents[place] = left
}

// read notes the contents of a receptacle if the text shows them.
func (k *knowledge) read(text string) {
	head, list, ok := strings.Cut(text, ", you see ")
	if !ok {
		return
	}
	list, _, _ = strings.Cut(list, "\n")
	if i := strings.LastIndex(head, "On the "); i >= 0 {
		k.contents[head[i+len("On the "):]] = names(list)
		return
	}
	if before, ok := strings.CutSuffix(head, " is open. In it"); ok {
		if i := strings.LastIndex(before, "The "); i >= 0 {
			k.contents[before[i+len("The "):]] = names(list)
		}
	}
}
