package pane

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
