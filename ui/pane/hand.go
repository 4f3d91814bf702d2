package pane

import tea "charm.land/bubbletea/v2"

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
