package screen

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
