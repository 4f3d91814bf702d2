package cell

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Run starts a command and attends to it.
func (s *Supervisor) Run(ctx context.Context, spec Spec, in io.Reader, out, errs io.Writer) (Exit, error) {
	p, err := s.Start(spec)
	if err != nil {
		return Exit{}, err
	}
	return Attend(ctx, p, in, out, errs)
}

// Attended is a run that can be attended to, on whichever machine it is.
type Attended interface {
	Streams() (stdin, stdout, stderr *os.File)
	CloseIO()
	Done() <-chan struct{}
	Stop(g Grace) error
	Exit() Exit
}

// Attend gives a command what in holds and the end of its input, and copies what it
// prints to out and errs. It returns once nothing of the run is left and all is
// copied. The end of ctx, or an error of in, out or errs, ends the run at once and is
// returned; an exit that is not 0 is no error. In may be nil, and so may out and errs,
// for what nobody reads. In is read until a read of it returns after the command's end.
func Attend(ctx context.Context, p Attended, in io.Reader, out, errs io.Writer) (Exit, error) {
	defer p.CloseIO()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stdin, stdout, stderr := p.Streams()
	var feeding, reading sync.WaitGroup
	feeding.Go(func() {
		defer stdin.Close()
		if in == nil {
			return
		}
		// A command need not read its input: its exit says what came of it.
		if _, err := io.Copy(stdin, in); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
			end(err)
		}
	})
	read := func(to io.Writer, from *os.File) {
		if to == nil {
			to = io.Discard
		}
		reading.Go(func() {
			// By its Write alone: a buffer within it would be read into past its bounds.
			if _, err := io.Copy(struct{ io.Writer }{to}, from); err != nil {
				end(err)
			}
		})
	}
	read(out, stdout)
	read(errs, stderr)
	copied := make(chan struct{})
	go func() {
		reading.Wait()
		close(copied)
	}()
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	err := p.Stop(Grace{Interrupt: -1, Terminate: -1})
	select { // its pipes end with it, unless it gave them away
	case <-copied:
	case <-ctx.Done():
	}
	p.CloseIO()
	<-copied
	feeding.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return p.Exit(), err
}

// NotFound reports an error of a start that says there is no such program in
// the PATH.
func NotFound(err error, program string) bool {
	var at *fs.PathError
	return errors.As(err, &at) && at.Path == program && errors.Is(err, fs.ErrNotExist)
}
