package terminal

import (
	"regexp"
	"sync"
	"time"

	"swarmdeck/engine/terminal"
)

// usualPrompt is how a line ends that waits for its rest: of shells, REPLs,
// debuggers and questions.
var usualPrompt = regexp.MustCompile(`[$#%>❯›»:?)\]]\s?$`)

// ringing is how long the screen stands still after a bell that means that the
// program waits.
const ringing = 500 * time.Millisecond

// why says what a state is known by.
type why int

const (
	byNothing why = iota
	byHook
	byProgress
	byPrompt
	byBell
)

// signs are what a program has given of its state. They are written while it is
// understood and read by the session's watch.
type signs struct {
	mu       sync.Mutex
	hook     string // the newest word of its hooks since something was typed
	said     string // with that, or with a bell: what it wants
	progress bool
	mark     byte // of a shell
	rang     bool // since something was typed
	news     bool // it wrote since the last look
	last     string
	changed  time.Time // when its picture changed last
	typed    time.Time // when something was typed last
}

// Words of hooks.
const (
	hookWorks  = "working"
	hookWaits  = "waits"
	hookDone   = "done"
	hookFailed = "failed"
)

func (s *signs) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// input says that something was typed: what it waited for before is over.
func (s *signs) input(now time.Time) {
	s.do(func() { s.hook, s.said, s.rang, s.mark, s.typed = "", "", false, 0, now })
}

func (s *signs) heed(word, text string) {
	switch word {
	case hookWorks, hookWaits, hookDone, hookFailed:
		s.do(func() { s.hook, s.said = word, text })
	}
}

func (s *signs) ring(text string) {
	s.do(func() {
		s.rang = true
		if text != "" {
			s.said = text
		}
	})
}

// verdict is a state, and what it is known by.
type verdict struct {
	state terminal.State
	by    why
	word  string // of the hook
	said  string
	// touched is when the picture changed last, still whether that was after
	// something was typed.
	touched  time.Time
	answered bool
	next     time.Duration // until it may be another although nothing happens
}

// judge weighs the signs. Text is the end of the picture; prompted tells whether
// the program stands at a prompt.
func (s *signs) judge(now time.Time, text string, quiet time.Duration, prompted func() bool) (v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news && text != s.last {
		s.last, s.changed = text, now
	}
	s.news = false
	still := now.Sub(s.changed)
	v = verdict{state: terminal.Working, word: s.hook, said: s.said, touched: s.changed, answered: s.changed.After(s.typed), next: quiet}
	switch {
	case s.hook == hookWorks:
		v.by = byHook
	case s.hook != "":
		v.state, v.by = terminal.Waits, byHook
	case s.progress:
		v.by = byProgress
	case s.mark == 'C':
		v.by = byPrompt
	case s.mark == 'A' || s.mark == 'B':
		v.state, v.by = terminal.Waits, byPrompt
	case still >= quiet && prompted():
		v.state, v.by = terminal.Waits, byPrompt
	case s.rang && still >= ringing:
		v.state, v.by = terminal.Waits, byBell
	case still < quiet:
		v.next = quiet - still
		if s.rang && still < ringing {
			v.next = min(v.next, ringing-still)
		}
	}
	return v
}
