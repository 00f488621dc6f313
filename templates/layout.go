package templates

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// modules are the bare names that our ES modules import each other by; the import map gives them hashed addresses.
func modules() []string {
	return []string{"dom", "keys", "live", "chart", "rollouts"}
}

// importMap writes the import map, which lets modules import each other by name although addresses carry hashes.
func importMap(p Page) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		m := map[string]string{}
		for _, name := range modules() {
			m["app/"+name] = p.asset("js/" + name + ".js")
		}
		b, err := json.Marshal(map[string]any{"imports": m}) // json escapes <, > and &
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, `<script type="importmap" nonce="`+html.EscapeString(p.Nonce)+`">`+string(b)+`</script>`)
		return err
	})
}

func joinSpace(s []string) string { return strings.Join(s, " ") }

func flashRole(kind string) string {
	if kind == "bad" {
		return "alert"
	}
	return "status"
}

// allKeys lists the page's keys before those that work everywhere.
func allKeys(p Page) []Key {
	out := append([]Key(nil), p.Keys...)
	return append(out,
		Key{"/ or Ctrl K", "search for a run, a trajectory, a page or an action"},
		Key{"g then r", "runs"},
		Key{"g then e", "experiments"},
		Key{"g then q", "queue"},
		Key{"g then w", "workers"},
		Key{"?", "this list"},
		Key{"Esc", "close"},
	)
}
