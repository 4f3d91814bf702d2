package screen

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Theme gives every role a look. It doesn't change after NewTheme, which works out all that
// drawing needs of it.
type Theme struct {
	Name   string
	styles [Roles]lipgloss.Style
	sgr    [Roles]string // selects the look whatever was selected before
	blank  [Roles]string // of spaces: a line under nothing would be a bar
	// figure and ground are the parameters of a role's two colours; shade those of its
	// colour at each brightness, without the digit that says which of the two it is.
	figure, ground [Roles]string
	shade          [Roles][TintLevels]string
	colored        bool
}

// NewTheme makes a theme; roles that are not in styles look like Text.
func NewTheme(name string, styles map[Role]lipgloss.Style) *Theme {
	t := &Theme{Name: name}
	for r := range Roles {
		s, ok := styles[r]
		if !ok {
			s = styles[Text]
		}
		t.styles[r], t.sgr[r], t.blank[r] = s, sgr(s), sgr(s.Underline(false))
		t.figure[r] = ansi.Style{}.ForegroundColor(said(s.GetForeground()))[0]
		t.ground[r] = ansi.Style{}.BackgroundColor(said(s.GetBackground()))[0]
		t.tints(r)
	}
	return t
}

// Style is the look of r.
func (t *Theme) Style(r Role) lipgloss.Style { return t.styles[r.known()] }

// sgr is the sequence that selects s whatever was selected before.
func sgr(s lipgloss.Style) string {
	open, _, _ := strings.Cut(s.Render("x"), "x")
	if open == "" {
		return plainSGR
	}
	return "\x1b[0;" + strings.TrimPrefix(open, "\x1b[")
}

// said is nil for the terminal's own colour.
func said(c ansi.Color) ansi.Color {
	if c == (lipgloss.NoColor{}) {
		return nil
	}
	return c
}

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

// Glyphs are the signs the cockpit draws itself. Each takes one cell by every
// way of counting.
type Glyphs struct {
	Horizontal, Vertical                       rune
	TopLeft, TopRight, BottomLeft, BottomRight rune
	Ellipsis                                   string // one cell; "~" without UTF-8
	Mark, Cursor, Up, Down, More               rune
	Separator                                  rune // between crumbs
	Bullet                                     rune
	ScrollBar, ScrollTrack                     rune
	Branch, LastBranch                         rune     // of a tree, before Horizontal
	Open, Closed                               rune     // what can be folded
	Joints                                     [16]rune // lines that meet, by where they come from: 1 above, 2 below, 4 left, 8 right
	State                                      [States]rune
}

// Unicode is the usual set.
func Unicode() *Glyphs {
	return &Glyphs{
		Horizontal: '─', Vertical: '│', TopLeft: '┌', TopRight: '┐', BottomLeft: '└', BottomRight: '┘',
		Ellipsis: "…", Mark: '■', Cursor: '▸', Up: '↑', Down: '↓', More: '…',
		Separator: '▸', Bullet: '·', ScrollBar: '█', ScrollTrack: '│',
		Branch: '├', LastBranch: '└', Open: '▾', Closed: '▸',
		Joints: [16]rune{' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'},
		State: [States]rune{
			Unknown: '·', Idle: '○', Working: '●', Queued: '◌', Waiting: '◆', Paused: '‖', Blocked: '⊘',
			Succeeded: '✓', Failure: '✗', Cancelled: '−', Offline: '◇', TimedOut: '◔', Stopped: '■',
		},
	}
}

// ASCII is the set for terminals without UTF-8.
func ASCII() *Glyphs {
	return &Glyphs{
		Horizontal: '-', Vertical: '|', TopLeft: '+', TopRight: '+', BottomLeft: '+', BottomRight: '+',
		Ellipsis: "~", Mark: '*', Cursor: '>', Up: '^', Down: 'v', More: '~',
		Separator: '>', Bullet: '-', ScrollBar: '#', ScrollTrack: '|',
		Branch: '|', LastBranch: '`', Open: '-', Closed: '+',
		Joints: [16]rune{' ', '|', '|', '|', '-', '+', '+', '+', '-', '+', '+', '+', '-', '+', '+', '+'},
		State: [States]rune{
			Unknown: '-', Idle: 'o', Working: '*', Queued: '.', Waiting: '?', Paused: '=', Blocked: '#',
			Succeeded: '+', Failure: 'x', Cancelled: '-', Offline: '!', TimedOut: '%', Stopped: '$',
		},
	}
}
