package ui

import (
	"io"
	"sync"

	"swarmdeck/ui/term"
)

// input is what a remote terminal sends. The toolkit gives its reading up when
// the screen is lent to another program, but can't stop a Read that waits: the
// next key would be lost in it. Wake ends such a Read with nothing.
type input struct {
	chunks chan []byte
	awake  chan struct{}
	ended  chan struct{} // nobody reads any more

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
	if len(in.rest) == 0 {
		select {
		case chunk, ok := <-in.chunks:
			if !ok {
				return 0, io.EOF
			}
			in.rest = chunk
		case <-in.awake:
			return 0, nil
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

func (in *input) wake() {
	select {
	case in.awake <- struct{}{}:
	default:
	}
}

// of is the terminal that the input comes from, whose reader is woken before it
// is suspended.
func (in *input) of(t *term.Remote) *term.Remote {
	woken := *t
	if t.Suspend != nil {
		woken.Suspend = func() {
			in.wake()
			t.Suspend()
		}
	}
	return &woken
}

// end stops handing out what comes in.
func (in *input) end() { in.once.Do(func() { close(in.ended) }) }
