// Package pane declares what a pane of the cockpit is and holds what several
// panes share: the item under the cursor, filters, the pager of long lists, the
// tail of a log and the sheet of a record. The panes are in packages by subject
// below.
//
// Most panes are one spec: a list is a Table (Spec shows how), the sheet of a
// stored record a Detail (DetailSpec), with Paras to write it out: headings,
// lines, links, trees (Tree), documents that fold. A form comes of Fill. A pane
// is made over the services that it reads, each an interface of its package;
// its keys are in the keymap, under the pane's name as their scope.
//
// A pane is a plain struct owned by the root model. Its methods run inside the
// root's Update or View, do no I/O and never block; what it wants read it
// returns as a tea.Cmd whose answer comes back through Update as a Reply. A
// Cmd never touches the pane.
package pane

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/view"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/screen"
)

// Kind is what a pane shows; it is also the keymap scope between the pane's
// own scope and the global one.
type Kind string

// The kinds of pane.
const (
	List  Kind = "list"  // rows with one under the cursor
	Sheet Kind = "sheet" // one record, scrolled
)

// Pane is one view of the cockpit.
type Pane interface {
	// Name is unique; it is the pane's keymap scope too.
	Name() string
	Kind() Kind
	// Title stands in the border; it counts n/m when a filter hides rows.
	Title(env Env) string

	// Show binds a sheet to a thing; a list may take it as its filter.
	Show(env Env, it Item) tea.Cmd
	// Refresh is called when the pane becomes visible and when the world has
	// changed while it is; it returns what must be read anew, or nil.
	Refresh(env Env) tea.Cmd
	// Update takes the answer of one of the pane's own Cmds.
	Update(env Env, body any) tea.Cmd
	// Resize says how many cells Draw will get.
	Resize(w, h int)

	// Do carries out a named action (down, top, mark, follow, …) and reports
	// whether the pane knows it.
	Do(env Env, action string) (tea.Cmd, bool)
	// Selected is the thing that keys act on; its Kind is "" when there is none.
	Selected(env Env) Item
	// Marks are the marked things, in no special order.
	Marks() []Item
	// ClearMarks forgets them.
	ClearMarks()
	// Filter narrows a list ("" shows all) or searches a sheet. An error
	// leaves everything as it was.
	Filter(env Env, text string) (tea.Cmd, error)
	// FilterText is the filter in force.
	FilterText() string
	// Reset forgets what was read: another tenant is shown from now on.
	Reset()

	Draw(c *screen.Canvas, env Env, focused bool)
}

// Opener is a sheet that opens other things than the one it shows.
type Opener interface {
	// Open is the thing under the cursor, empty for none.
	Open(env Env) Item
}

// Copier is a pane that is copied as a whole, rather than the id under the cursor.
type Copier interface{ Copy() string }

// Viewer is a pane whose thing can be looked at in another way: as a picture, as a diff.
type Viewer interface {
	// Picture is what to open for that, empty for nothing.
	Picture(env Env) Item
}

// Runner is a pane some of whose actions run a command line first.
type Runner interface {
	// Run is the line of an action; ok is false when it has none now.
	Run(env Env, action string) (words []string, ok bool)
}

// Wanter is a pane that knows how wide it should be.
type Wanter interface {
	// Want is the width at which it, h lines high, cuts nothing that matters, and that
	// at which it has all that it could show; 0 is any.
	Want(env Env, h int) (least, all int)
}

// Broad is a pane that has the whole screen: a list while nothing of it is open, a sheet
// once it is.
type Broad interface{ Broad() }

// Env is what a pane may know at one moment. Snap is never nil.
type Env struct {
	Snap     *view.Snapshot
	Tenant   string
	Caller   core.Caller
	Now      time.Time
	Glyphs   *screen.Glyphs
	ReadOnly bool
	// Types says that whoever looks may type into agents' terminals.
	Types bool
	Focus string // name of the pane that has the keys
	// Visitor is this cockpit among Snap.Visitors; 0 when it is none.
	Visitor uint64
	// Tints says that the screen shows shades of colour.
	Tints bool
	// Colored says that the theme has colours.
	Colored bool
	// Links says that the terminal opens links (OSC 8).
	Links bool
	// Settled says that the screen has stood still long enough for an answer
	// to an approval to count.
	Settled bool
}

// ASCII tells whether only ASCII may be drawn.
func (e *Env) ASCII() bool { return e.Glyphs.Ellipsis == "~" }

// Reply carries the answer of a Cmd back to the pane that asked.
type Reply struct {
	Pane string
	Body any
}

// readLimit is how long a read may take.
const readLimit = 5 * time.Second

// Ask makes a Cmd that calls read outside Update, for at most 5 s, and replies
// to the pane.
func Ask(pane string, read func(ctx context.Context) any) tea.Cmd {
	return AskFor(pane, readLimit, read)
}

// AskFor is Ask for what may take longer.
func AskFor(pane string, most time.Duration, read func(ctx context.Context) any) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		return Reply{Pane: pane, Body: read(ctx)}
	}
}

// Note is a message of a pane to the operator.
type Note struct {
	Text string
	Bad  bool
}

// Say makes a Cmd that tells the operator something.
func Say(text string, bad bool) tea.Cmd {
	return func() tea.Msg { return Note{Text: text, Bad: bad} }
}

// Fill is a form that a pane wants filled in, and the command line that comes
// of it. A pane that knows the fields gives it at once, as a Filler; one that
// has to read them first returns Fill.Ask from its Update.
//
//	func (p *Pane) Fill(env pane.Env, action string) (f pane.Fill, has bool, err error) {
//		s := p.skill
//		if action != "invoke" {
//			return f, false, nil
//		}
//		return pane.Fill{
//			Title: "invoke " + s.Ref(), Fields: overlay.SchemaFields(s.ParametersSchema),
//			Line: func(object core.Raw) []string { return []string{"skill", "invoke", s.Ref(), "--input", string(object)} },
//		}, true, nil
//	}
//
// When the command refuses the line the form comes back, the reason at the
// field that the error names.
type Fill struct {
	Title  string
	Fields []overlay.Field
	Check  func(object core.Raw) error    // see overlay.Form; may be nil
	Line   func(object core.Raw) []string // the words of the command
}

// Filler is a pane some of whose actions open a form.
type Filler interface {
	// Fill is the form of an action, or why there is none now; has is false for one that
	// opens no form.
	Fill(env Env, action string) (f Fill, has bool, err error)
}

// Ask opens the form by itself: keys pressed just now don't go into it.
func (f Fill) Ask() tea.Cmd { return func() tea.Msg { return f } }

// Hand is a pane that takes keys as they are while its operator types into it:
// none of them is a key of the cockpit then but those of its typing scope.
type Hand interface {
	// Typing reports whether it does, and the scope of the keys that it leaves.
	Typing() (scope string, on bool)
	// Press takes a key, Paste a pasted text.
	Press(env Env, k tea.KeyPressMsg) tea.Cmd
	Paste(env Env, text string) tea.Cmd
	// Secret says that what is typed now is to be written nowhere.
	Secret() bool
}

// Pointed is a pane that takes the mouse; the terminal reports it while one is shown.
type Pointed interface {
	// Mouse takes what the mouse did at a cell of the pane.
	Mouse(env Env, msg tea.MouseMsg, x, y int) tea.Cmd
}

// Aimed is a list that the mouse points into.
type Aimed interface {
	// Aim selects the row that is drawn in line y of the pane; false where none is.
	Aim(y int) bool
}

// Follower is a pane that follows something which rings no bell of the engine.
type Follower interface {
	// Follow is called after each update, with whether the pane is on the screen. Its
	// Cmd may wait without end; the answer is a Woke.
	Follow(env Env, visible bool) tea.Cmd
	// Woke takes such an answer.
	Woke(env Env, body any) tea.Cmd
}

// Woke is the answer of a Cmd of a Follower.
type Woke struct {
	Pane string
	Body any
}

// Paper is something that a pager can show: a text, or what a directory holds.
type Paper struct {
	Text string // of several lines, from outside
	Dir  string // "" is a text; else a directory, relative to the engine's
}

// Papered is a pane with something for a pager.
type Papered interface {
	// Paper is what is under the cursor, else what the pane is about; ok is
	// false when that is nothing a pager shows.
	Paper(env Env) (p Paper, ok bool)
}
