// Package templates holds the pages and their parts. Everything shown is escaped by templ; nothing here knows SQL.
package templates

import (
	"github.com/a-h/templ"

	"agentrl/internal/auth"
)

// Crumb is one step of the breadcrumb line. The last one has no Href.
type Crumb struct {
	Text string
	Href string
}

// Flash is a message about what just happened. Kind is "good", "bad" or "information".
type Flash struct {
	Kind string
	Text string
	ID   string // an id to quote, for errors
}

// Page is what every page has around its own content.
type Page struct {
	Title  string
	Nav    string // key of the active rail item, see NavItems
	User   string // shown in the user menu; empty: nobody is signed in
	Role   auth.Role
	Nonce  string                   // of this response
	Assets func(name string) string // address of a file below static/, with its content hash
	Crumbs []Crumb
	Flash  Flash
	Topics []string // live topics of the page, for the connection state; empty: nothing is live here
	Script string   // module of the page below js/, without ".js"; empty: none
	Keys   []Key    // the page's own shortcuts, shown under "?"
	Wide   bool     // use the whole width
	Charts bool     // load the chart library
}

// Key is one keyboard shortcut.
type Key struct {
	Press string
	Does  string
}

// NavItem is an entry of the left rail.
type NavItem struct {
	Key, Text, Href string
	Min             auth.Role
}

// NavItems lists the left rail in order.
func NavItems() []NavItem {
	return []NavItem{
		{"experiments", "Experiments", "/experiments", auth.Viewer},
		{"runs", "Runs", "/runs", auth.Viewer},
		{"saved", "Mixes and pools", "/saved", auth.Viewer},
		{"queue", "Queue", "/queue", auth.Viewer},
		{"workers", "Workers", "/workers", auth.Viewer},
		{"settings", "Settings", "/settings", auth.Viewer},
	}
}

// Can reports whether the signed-in user may do what needs min.
func (p Page) Can(min auth.Role) bool { return p.Role.Allows(min) }

func (p Page) asset(name string) string {
	if p.Assets == nil {
		return "/static/" + name
	}
	return p.Assets(name)
}

// HX builds the attributes of an element that htmx acts on: pairs of name (without "hx-") and value, and the nonce
// without which the page's security extension ignores the element. It is the only way to write hx-* attributes.
func HX(nonce string, pairs ...string) templ.Attributes {
	a := templ.Attributes{"hx-nonce": nonce}
	for i := 0; i+1 < len(pairs); i += 2 {
		a["hx-"+pairs[i]] = pairs[i+1]
	}
	return a
}
