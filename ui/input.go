package ui

import (
	"io"
	"sync"
	"sync/atomic"

	"swarmdeck/engine/loop"
	"swarmdeck/ui/term"
)

// input is what a remote terminal sends. The toolkit gives its reading up when
// the screen is lent to another program, but can't stop a Read that waits: the
// next key would be lost in it. So what is typed waits from when that is decided
// until it is over, and wake ends a Read with nothing.
type input struct {
	chunks chan []byte
	awake  chan struct{}
	ended  chan struct{} // nobody reads any more
	held   atomic.Bool   // what is typed waits

	rest []byte
	once sync.Once
}

func newInput(r io.Reader) *input {
	in := &input{chunks: make(chan []byte), awake: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(in.chunks)
		for {
			buf := make([]byte, 4096)
			n, err := r.Read(buf)
			if n > 0 {
				select {
				case in.chunks <- buf[:n]:
				case <-in.ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return in
}

// Read is for one reader at a time; one that was woken counts no more.
func (in *input) Read(p []byte) (int, error) {
	if chunks := in.chunks; len(in.rest) == 0 || in.held.Load() {
		if in.held.Load() {
			chunks = nil
		}
		select {
		case chunk, ok := <-chunks:
			if !ok {
				return 0, io.EOF
			}
			in.rest = chunk
		case <-in.awake:
			return 0, nil
		}
		if in.held.Load() {
			return 0, nil
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

func (in *input) wake() { loop.Ring(in.awake) }

// of is the terminal that the input comes from, which can be given up without
// loss of what is typed meanwhile.
func (in *input) of(t *term.Remote) *term.Remote {
	held := *t
	held.Hold = func() {
		in.held.Store(true)
		in.wake()
	}
	if t.Suspend != nil {
		held.Suspend = func() {
			in.wake()
			t.Suspend()
			in.held.Store(false)
		}
	}
	if t.Run != nil {
		held.Run = func(argv []string) error {
			in.wake()
			defer in.held.Store(false)
			return t.Run(argv)
		}
	}
	return &held
}

// end stops handing out what comes in.
func (in *input) end() { in.once.Do(func() { close(in.ended) }) }
