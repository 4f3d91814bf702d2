// Package keymap turns keys into what they do. Bindings are data: the
// defaults are a TOML file, a user's file changes them, and the footer, the
// help and the palette show what is in force. A binding runs a command line,
// the same as one typed, or performs an action of the cockpit itself.
//
// A keymap doesn't change once loaded and may be read from any goroutine.
package keymap

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Sequence is one or more keys pressed one after another, in the spelling of
// the toolkit: "j", "G", "ctrl+d", "space", "shift+tab".
type Sequence []string

// String is how a sequence is written in a keymap file: keys with spaces
// between them.
func (s Sequence) String() string { return strings.Join(s, " ") }

// Confirm is the least a command line wants before it runs.
type Confirm string

// The tiers. With ConfirmAuto the command itself decides.
const (
	ConfirmAuto Confirm = ""
	ConfirmNone Confirm = "none"
	ConfirmAsk  Confirm = "confirm" // y or n; Enter means no
	ConfirmType Confirm = "type"    // type the name or the count
)

// Binding is what some keys do in one scope.
type Binding struct {
	Scope   string     `toml:"scope"`
	Keys    []Sequence `toml:"-"`      // at least one
	Line    string     `toml:"line"`   // a command line with placeholders, or else
	Action  string     `toml:"action"` // an action of the cockpit
	Help    string     `toml:"help"`   // a sentence for the help
	Hint    string     `toml:"hint"`   // a word for the footer; empty keeps it out
	Confirm Confirm    `toml:"confirm"`
	Fill    bool       `toml:"fill"`  // put Line into the palette to be completed, don't run it
	Bulk    bool       `toml:"bulk"`  // Line may run once for every marked row
	Guard   bool       `toml:"guard"` // answers something: never by repeat or paste, dead while the view settles
	From    string     `toml:"-"`     // "default" or the user's file, with the line: "keys.toml:12"
}

// What is the line or the action.
func (b *Binding) What() string {
	return cmp.Or(b.Line, b.Action)
}

// Verb is what a line does, the word before what it does that to: stop of "agent stop {agent}".
func (b *Binding) Verb() string {
	before, _, _ := strings.Cut(b.Line, " {")
	return before[strings.LastIndexByte(before, ' ')+1:]
}

// Label is the binding's keys for a person: "j, down".
func (b *Binding) Label() string {
	names := make([]string, len(b.Keys))
	for i, k := range b.Keys {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

// Keymap holds bindings by scope.
type Keymap struct {
	all     []*Binding // in file order, the user's after the defaults
	byScope map[string][]entry
}

// entry is one sequence of one binding.
type entry struct {
	keys Sequence
	b    *Binding
}

// Match is what pressed keys mean.
type Match struct {
	Binding *Binding // they are complete; nil otherwise
	More    []Next   // they are the beginning of these; empty otherwise
}

// Next is a way to go on.
type Next struct {
	Keys    Sequence // what is still to be pressed
	Binding *Binding
}

// Lookup tells what keys mean in scopes, the innermost first. The innermost
// scope that knows the keys, whole or as a beginning, decides; ways to go on
// come from the outer scopes too.
func (m *Keymap) Lookup(scopes []string, keys Sequence) Match {
	var out Match
	if len(keys) == 0 {
		return out
	}
	for _, scope := range scopes {
		for _, e := range m.byScope[scope] {
			if len(e.keys) < len(keys) || !slices.Equal(e.keys[:len(keys)], keys) {
				continue
			}
			if len(e.keys) > len(keys) {
				out.More = append(out.More, Next{e.keys[len(keys):], e.b})
			} else if len(out.More) == 0 {
				return Match{Binding: e.b}
			}
		}
	}
	return out
}

// Bindings are those in force in scopes, innermost scope first, in file order.
// A binding of which an inner scope hides some keys comes with the others
// only; one that is hidden altogether is left out.
func (m *Keymap) Bindings(scopes []string) []Binding {
	var out []Binding
	for i, scope := range scopes {
		for _, b := range m.all {
			if b.Scope != scope || slices.Contains(scopes[:i], scope) {
				continue
			}
			live := *b
			live.Keys = slices.DeleteFunc(slices.Clone(b.Keys), func(k Sequence) bool { return m.hidden(scopes[:i], k) })
			if len(live.Keys) > 0 {
				out = append(out, live)
			}
		}
	}
	return out
}

// hidden tells whether one of the inner scopes takes keys, or the beginning
// of them, for itself.
func (m *Keymap) hidden(inner []string, keys Sequence) bool {
	for _, scope := range inner {
		for _, e := range m.byScope[scope] {
			n := min(len(e.keys), len(keys))
			if slices.Equal(e.keys[:n], keys[:n]) {
				return true
			}
		}
	}
	return false
}

// All are all bindings of all scopes in file order.
func (m *Keymap) All() []Binding {
	out := make([]Binding, len(m.all))
	for i, b := range m.all {
		out[i] = *b
	}
	return out
}

// Hint is one entry of the footer.
type Hint struct {
	Key, Text string
	Binding   Binding
}

// Hints are the footer's entries for scopes, the innermost scope's first.
func (m *Keymap) Hints(scopes []string) []Hint {
	var out []Hint
	for _, b := range m.Bindings(scopes) {
		if b.Hint != "" {
			out = append(out, Hint{b.Keys[0].String(), b.Hint, b})
		}
	}
	return out
}

// KeyFor is the first key in force in scopes for an action, or for a command
// line that begins with the words of what; empty when there is none. The
// palette shows it beside a command.
func (m *Keymap) KeyFor(scopes []string, what string) string {
	for _, b := range m.Bindings(scopes) {
		if b.Action == what && what != "" || b.Line != "" && (b.Line == what || strings.HasPrefix(b.Line, what+" ")) {
			return b.Keys[0].String()
		}
	}
	return ""
}

// Words is the vocabulary of the cockpit.
func Words() Vocabulary {
	v := Vocabulary{
		Scopes: []string{
			"global", "list", "sheet", "fleet", "agent", "tasks", "task", "approvals", "card", "sessions", "session", "tenants", "engines", "engine", "audit", "event",
			"decisions", "decision", "messages", "message",
			"skills", "skill", "executions", "execution", "subagents", "subagent", "bus", "bus-message", "subscriptions",
			"cad-agents", "cad-agent", "workspaces", "workspace", "workflows", "workflow", "conflicts", "conflict", "solid",
			"overview", "timeline", "story", "record", "lineage", "compare", "policies", "policy", "diff", "reviews", "review", "terminal", "terminal-typing",
		},
		Actions: []string{
			"up", "down", "left", "right", "top", "bottom", "half-up", "half-down", "page-up", "page-down", "open", "back", "quit",
			"mark", "mark-all", "show-all", "clear-marks", "filter", "sort", "next-match", "prev-match", "follow", "wrap", "fold", "fold-all",
			"palette", "help", "panes", "messages", "tenants", "redraw", "suspend", "mouse", "undo",
			"next-need", "copy", "copy-row", "links", "alone", "focus-next", "focus-prev", "history-back", "history-forward", "last-view",
			"approve", "deny", "abort", "edit", "always", "defer", "pause", "estop", "invoke", "create", "pager",
			"show-skills", "show-executions", "show-subagents", "show-bus", "show-subscriptions", "show-engines",
			"show-cad-agents", "show-workspaces", "show-workflows", "show-conflicts", "view", "view-front", "view-top", "view-right", "view-iso",
			"view-four", "zoom-in", "zoom-out", "roll-left", "roll-right", "pan-left", "pan-right", "pan-up", "pan-down", "mode", "next-part",
			"show-overview", "span", "by", "timeline", "story", "since", "work", "review", "swap", "show-reviews", "compare", "travel", "now", "fork", "cases", "backtest", "show-policies",
			"next-hunk", "prev-hunk", "next-file", "prev-file", "side-by-side", "files", "range", "viewed", "arguments", "terminal", "type", "detach", "edit-file",
		},
	}
	for n := range 9 {
		v.Actions = append(v.Actions, "goto-"+strconv.Itoa(n+1))
	}
	return v
}
