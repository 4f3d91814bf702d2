package term

// Size is that of a terminal in cells.
type Size struct{ Width, Height int }

// Remote is a terminal at the other end of a connection: this process can't
// ask it for its size or its signals, it is told.
type Remote struct {
	Size
	// Resized gives each new size, the newest only when several wait.
	Resized <-chan Size
	// Suspend stops the program at the other end as ctrl+z stops a local one,
	// and returns when it goes on; nil when it can't.
	Suspend func()
	// Hold, called before, has what is typed wait until Suspend or Run returns; nil where
	// nobody reads ahead.
	Hold func()
	// Run gives the terminal to a program of whoever sits there, and returns when that
	// has ended; nil when it can't.
	Run func(argv []string) error
	// Full says that the other end is behind: what is written now would be old
	// when it is seen. Nil never is.
	Full func() bool
	// Drained gets a token when that may have changed.
	Drained <-chan struct{}
}
