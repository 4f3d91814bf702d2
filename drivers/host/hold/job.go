package hold

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

// job is work of the keeper's own in the place of a process: it reads its input, writes
// its answer and is over.
type job struct {
	ours [3]*os.File
	done chan struct{}

	cancel context.CancelFunc

	exit cell.Exit // valid after done
	once sync.Once
}

var _ keeper.Process = (*job)(nil)

func newJob(work func(ctx context.Context, in io.Reader, out io.Writer) error) (*job, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ours, theirs, err := pipe.Streams()
	if err != nil {
		cancel()
		return nil, err
	}
	j := &job{ours: ours, done: make(chan struct{}), cancel: cancel}
	began := time.Now()
	go func() {
		defer cancel()
		if err := work(ctx, theirs[0], theirs[1]); err != nil {
			j.exit.Code = 1
			_, _ = fmt.Fprintln(theirs[2], err)
		}
		j.exit.Duration = time.Since(began)
		pipe.CloseAll(theirs)
		close(j.done)
	}()
	return j, nil
}

func (j *job) Streams() (stdin, stdout, stderr *os.File) { return j.ours[0], j.ours[1], j.ours[2] }

func (j *job) CloseIO() {
	j.once.Do(func() {
		j.cancel()
		pipe.CloseAll(j.ours)
	})
}

func (j *job) Done() <-chan struct{} { return j.done }

func (j *job) Ended() bool { return core.IsOver(j.done) }

func (j *job) Exit() cell.Exit {
	<-j.done
	return j.exit
}

// Stop implements keeper.Process: without its streams it ends by itself.
func (j *job) Stop(cell.Grace) error {
	if !j.Ended() {
		j.CloseIO()
		<-j.done
	}
	return nil
}

// The rest of keeper.Process has no meaning for it.

func (*job) Unread() bool { return false }

func (*job) PID() int { return 0 }

func (*job) Missing() []string { return nil }

func (*job) Loose() string { return "" }

func (*job) Serves(string, bool) {}

func (*job) Interrupt(syscall.Signal) {}

func (*job) Mark() {}

func (*job) Prune(time.Duration) {}

func (*job) Pause(context.Context) error { return nil }

func (*job) Resume(context.Context) error { return nil }
