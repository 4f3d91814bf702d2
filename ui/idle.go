package ui

import (
	"bytes"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	// restAfter is how long a cockpit shows the same before its clock rests.
	restAfter = 150 * time.Millisecond
	// restFor is the longest rest at a time: how long the toolkit's end waits
	// at worst when it comes by a way that nothing here sees.
	restFor = time.Second
	// restWord reaches the Write of a rest by the toolkit and ends there: a
	// terminal might take it for a title.
	restWord = "\x1b_rest\x1b\\"
)

// rest stops the toolkit's clock while the screen stays as it is. The clock
// looks for something to write 60 times a second for ever, which would be
// nearly all that an idle cockpit costs. The goroutine that it wakes writes
// what was sent beside the frames first and looks at the frame then: a word
// sent so makes it wait in Write until there is a new frame, which it then
// draws at once, or at its next tick.
type rest struct {
	to    io.Writer
	send  func(tea.Msg)
	timer *time.Timer // of the lull that comes before a rest

	last tea.View // the newest that the toolkit was given; the event loop's own

	mu     sync.Mutex
	newest uint64        // counts what wakes
	asked  uint64        // newest, when the word was sent
	drawn  uint64        // newest that the clock has surely drawn
	sent   bool          // the word is under way, or rested on
	woken  chan struct{} // closed at the end of a rest; nil is none
	over   bool          // no more rests
}

// restMsg: the lull was long enough.
type restMsg struct{}

func newRest(to io.Writer) *rest { return &rest{to: to} }

// begin starts the first lull of a program.
func (r *rest) begin(p *tea.Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send = p.Send
	r.timer = time.AfterFunc(restAfter, func() { r.send(restMsg{}) })
}

// end wakes the clock for good.
func (r *rest) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.timer.Stop()
	r.rouse()
}

// wake lets the clock go on, until the next lull.
func (r *rest) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest++
	r.rouse()
	if !r.over {
		r.timer.Reset(restAfter)
	}
}

func (r *rest) rouse() {
	if r.woken != nil {
		close(r.woken)
		r.woken = nil
	}
}

// filter sees each message before the toolkit does. While the clock rests the
// toolkit can't write beside the frames either, so whatever may make it do so
// wakes the clock first. Keys and the cockpit's own messages only change what
// is shown: that wakes it when the frame is there.
func (r *rest) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg.(type) {
	case restMsg:
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.over || r.sent {
			return nil
		}
		r.sent, r.asked = true, r.newest
		return tea.RawMsg{Msg: restWord}
	case bellMsg, frameMsg, tickMsg, spinMsg, settled, aloneMsg, drainedMsg, tracked, tea.KeyMsg, tea.PasteMsg:
	default:
		r.wake()
	}
	return msg
}

// seen is told the view that the toolkit is about to be given.
func (r *rest) seen(v tea.View) {
	if sameView(v, r.last) {
		return
	}
	r.last = v
	r.wake()
}

// sameView compares what a cockpit changes of its view.
func sameView(a, b tea.View) bool {
	return a.Content == b.Content && a.WindowTitle == b.WindowTitle && a.MouseMode == b.MouseMode &&
		(a.Cursor == nil) == (b.Cursor == nil) && (a.Cursor == nil || a.Cursor.Position == b.Cursor.Position)
}

// Write is the toolkit's.
func (r *rest) Write(p []byte) (int, error) {
	text := bytes.ReplaceAll(p, []byte(restWord), nil)
	asked := len(text) < len(p)
	if asked {
		defer r.sleep()
	}
	if len(text) > 0 || !asked {
		if n, err := r.to.Write(text); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// sleep takes the word. The toolkit draws after it, so the first one after a
// change only shows that the change is drawn by the time of the second.
func (r *rest) sleep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := restAfter
	switch {
	case r.over:
		return
	case r.asked != r.newest: // something came since
	case r.drawn != r.asked:
		r.drawn, again = r.asked, 0
	default:
		r.woken = make(chan struct{})
		r.wait(r.woken)
		if r.woken != nil { // nothing came
			r.woken, again = nil, 0
		}
	}
	r.sent = false
	if !r.over {
		r.timer.Reset(again)
	}
}

// wait lets go of mu meanwhile.
func (r *rest) wait(woken <-chan struct{}) {
	r.mu.Unlock()
	defer r.mu.Lock()
	longest := time.NewTimer(restFor)
	defer longest.Stop()
	select {
	case <-woken:
	case <-longest.C:
	}
}

// resting is the cockpit as the toolkit has it.
type resting struct {
	*Model
	rest *rest
}

func (m resting) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := m.Model.Update(msg)
	return m, cmd
}

func (m resting) View() tea.View {
	v := m.Model.View()
	m.rest.seen(v)
	return v
}
