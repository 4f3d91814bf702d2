package env

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// bench is where bodies are made: the kernel that is open now, if any, and what
// it holds. A kernel that fails, or that does not answer before a deadline, is
// given up; the next use opens another, and bodies are made again as they are
// needed.
type bench struct {
	open   func(context.Context) (Kernel, error)
	about  About
	kernel Kernel
	bodies *bodies
	// overlaps is what pairs of bodies share, by their hashes in order: the same
	// on every kernel that is opened.
	overlaps map[[2]string]*Overlap
	// opening is what comes of a kernel that is being started; nil when none is.
	opening chan opened
	giveUp  context.CancelFunc // starting it

	lost int64 // kernels given up
	// strays is the number of calls that nobody waits for any more. A call into
	// the embedded kernel can't be stopped.
	strays atomic.Int32
}

const (
	// patience is how long a call may take to notice that its context has ended.
	patience = 250 * time.Millisecond
	// openTime is how long a kernel may take to start.
	openTime = time.Minute
	// maxStrays bounds the processors and the memory that abandoned calls take.
	maxStrays = 2
)

func newBench(ctx context.Context, open func(context.Context) (Kernel, error)) (*bench, error) {
	b := &bench{open: open, bodies: newBodies(), overlaps: map[[2]string]*Overlap{}}
	if err := b.ready(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// opened is a kernel, or why there is none.
type opened struct {
	kernel Kernel
	err    error
}

// ready opens a kernel where none is. It starts on its own time: a request that
// can't wait so long leaves it to the next.
func (b *bench) ready(ctx context.Context) error {
	if b.kernel != nil {
		return nil
	}
	if b.strays.Load() >= maxStrays {
		return Refuse(Timeout, "", nil, "the kernel is still busy with operations that took too long", "wait, or start the environment again")
	}
	if b.opening == nil {
		start, stop := context.WithTimeout(context.WithoutCancel(ctx), openTime)
		b.opening, b.giveUp = make(chan opened, 1), stop
		go func(to chan<- opened) {
			k, err := b.open(start)
			to <- opened{k, err}
		}(b.opening)
	}
	var o opened
	select {
	case o = <-b.opening:
	case <-ctx.Done():
		return ended(ctx)
	}
	b.giveUp()
	b.opening = nil
	if o.err != nil {
		return lost(fmt.Errorf("open a CAD kernel: %w", o.err))
	}
	b.kernel = o.kernel
	if b.about.Name == "" { // read without a lock from then on
		b.about = o.kernel.About()
	}
	return nil
}

// use lets the kernel work until the context ends.
func (b *bench) use(ctx context.Context, work func(ctx context.Context, k Kernel) error) error {
	if err := ctx.Err(); err != nil {
		return ended(ctx)
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	k := b.kernel
	done := make(chan error, 1)
	go func() { done <- work(ctx, k) }()
	select {
	case err := <-done:
		return b.judge(ctx, k, err)
	case <-ctx.Done():
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-done:
		return b.judge(ctx, k, err)
	case <-late.C:
	}
	b.forget()
	b.strays.Add(1)
	go func() { // ends when the call does
		<-done
		_ = k.Close() // nobody is left to tell
		b.strays.Add(-1)
	}()
	return ended(ctx)
}

// judge gives up the kernel unless its error is a refusal.
func (b *bench) judge(ctx context.Context, k Kernel, err error) error {
	if err == nil {
		return nil
	}
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Code != InsufficientMemory {
		return err
	}
	b.forget()
	closed := k.Close()
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case refusal != nil:
		return err
	}
	return lost(fmt.Errorf("the kernel was lost and is opened anew: %w", errors.Join(err, closed)))
}

func (b *bench) forget() {
	b.kernel, b.bodies = nil, newBodies()
	b.lost++
}

func (b *bench) close() error {
	if b.opening != nil {
		b.giveUp()
		b.kernel = (<-b.opening).kernel
		b.opening = nil
	}
	if b.kernel == nil {
		return nil
	}
	k := b.kernel
	b.kernel = nil
	return k.Close()
}

// The causes that end a request before its time.
var (
	errDeadline = errors.New("the deadline has passed")
	errCancel   = errors.New("the request was cancelled")
)

// ended is the refusal of a request whose context has ended.
func ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDeadline), errors.Is(cause, context.DeadlineExceeded):
		return Refuse(Timeout, "deadline_ms", nil, "the operation took longer than its deadline; nothing has changed", "give a longer deadline_ms, up to 600000, or a coarser tolerance")
	case errors.Is(cause, errCancel):
		return Refuse(OperationInvalid, "", nil, "the request was cancelled; nothing has changed", "send it again")
	}
	return Refuse(OperationInvalid, "", nil, "the environment is shutting down; nothing has changed", "start it again")
}
