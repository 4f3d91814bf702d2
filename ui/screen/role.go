package screen

import "slices"

// Role says what a cell means; a theme says what that looks like. Goldens and
// scripts know roles only, so a change of theme changes no test.
type Role uint8

// The roles. Text is the zero value.
const (
	Text        Role = iota
	Dim              // secondary text, placeholders, disabled things
	Title            // titles of panes and cards, column heads
	Header           // the header line
	HeaderHot        // what in the header wants attention
	Footer           // the footer line
	FooterKey        // a key in the footer
	Border           // borders of panes without focus
	BorderFocus      // borders of the pane with focus
	Selected         // the selected row of the pane with focus
	SelectedOff      // the selected row of another pane
	Marked           // a marked row
	Good             // succeeded, approved, healthy
	Busy             // running, working
	Warn             // waiting, paused, slow
	Bad              // failed, denied, offline
	Danger           // emergency stop, high risk, destructive
	Accent           // ids, links, what may be opened
	Input            // text being typed
	Match            // found by a search
	Toast            // a message
	ToastBad         // an error message
	Added            // added lines of a diff
	Removed          // removed lines of a diff
	Hidden           // hidden characters made visible
	AddedWord        // what is new within a line
	RemovedWord      // what is gone within a line
	Keyword          // of a programming language
	Literal          // a text or a number in one
	Comment          // in one
	Strong           // stressed words of a text
	Emphasis         // words of a text that stand out less
	Roles            // how many there are
)

var roleNames = [Roles]string{
	"text", "dim", "title", "header", "header-hot", "footer", "footer-key", "border", "border-focus", "selected",
	"selected-off", "marked", "good", "busy", "warn", "bad", "danger", "accent", "input", "match", "toast", "toast-bad",
	"added", "removed", "hidden", "added-word", "removed-word", "keyword", "literal", "comment", "strong", "emphasis",
}

// roleLetters are what Canvas.Roles prints, in the order of the constants.
const roleLetters = ".dtHAfkbFsSmgywxDaiMoO+-hPNKL#BI"

// State reports whether the role says how a thing is: its colour is told apart
// also where the row is selected.
func (r Role) State() bool { return r >= Good && r <= Danger }

// String is the role's name in themes and scripts, such as "header-hot".
func (r Role) String() string {
	if r < Roles {
		return roleNames[r]
	}
	return "unknown"
}

// Letter is the role's sign in Canvas.Roles; '.' is Text.
func (r Role) Letter() byte {
	if r < Roles {
		return roleLetters[r]
	}
	return '?'
}

// ParseRole finds a role by its name.
func ParseRole(name string) (Role, bool) {
	i := slices.Index(roleNames[:], name)
	return Role(max(i, 0)), i >= 0
}

// known is r, or Text for a number that is no role.
func (r Role) known() Role {
	if r < Roles {
		return r
	}
	return Text
}

// RoleNames are the names of all roles, in order.
func RoleNames() []string { return append([]string(nil), roleNames[:]...) }
