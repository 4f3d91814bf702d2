package serve

import (
	"io"
	"sync"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// outlet is a standard output. One that nobody reads any more ends its command
// at the next write, as a broken pipe does.
type outlet struct {
	c   *channel
	out io.Writer
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.c.unread.Load() {
		o.c.cancel(nil)
		return 0, io.ErrClosedPipe
	}
	return o.out.Write(p)
}

// asking is an input that asks for itself when it is first read.
type asking struct {
	ch   gossh.Channel
	once sync.Once
}

func (a *asking) Read(p []byte) (int, error) {
	a.once.Do(func() { _, _ = a.ch.SendRequest(wantInput, false, nil) })
	return a.ch.Read(p)
}

// timed ends what stands still in a write.
type timed struct {
	io.Writer
	after time.Duration
	stop  func()
}

func (w *timed) Write(p []byte) (int, error) {
	defer time.AfterFunc(w.after, w.stop).Stop()
	return w.Writer.Write(p)
}

// waking is an input that puts the end of its session off.
type waking struct {
	io.Reader
	after time.Duration
	timer *time.Timer
}

func (r *waking) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.timer.Reset(r.after)
	}
	return n, err
}

var _ io.Reader = (*asking)(nil)
