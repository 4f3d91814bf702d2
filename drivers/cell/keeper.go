package cell

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	masks "swarmdeck/engine/secret"
)

// keeper is what an init keeps with. A nil one keeps nothing.
type keeper struct {
	keeping
	free chan struct{} // closed when the engine ends the run
	once sync.Once

	mu   sync.Mutex
	kept Kept
	read [2]pipe.Kept // of the pipes, in clear
}

func newKeeper(o *order) *keeper {
	k := &keeper{keeping: *o.Keep, free: make(chan struct{}), kept: Kept{Run: o.Run, Whose: o.Keep.Whose}}
	for n := range k.read {
		k.read[n].Most, k.read[n].End = maxKept, true
	}
	return k
}

// exited notes how the first process ended.
func (k *keeper) exited(ws syscall.WaitStatus) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := exitOf(ws)
	k.kept.How, k.kept.Ended, k.kept.Code, k.kept.Signal = EndedItself, time.Now(), e.Code, e.Signal
}

func (k *keeper) serves(task string, on bool) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept.Tasks = slices.DeleteFunc(k.kept.Tasks, func(t string) bool { return t == task })
	if on && len(k.kept.Tasks) < serving {
		k.kept.Tasks = append(k.kept.Tasks, task)
	}
}

// release tells it that the engine ends the run, and so waits for its init.
func (k *keeper) release() {
	if k != nil {
		k.once.Do(func() { close(k.free) })
	}
}

// taken waits until the engine has read all that a run without processes left,
// and how it ended, or ends the run. It returns false when the engine has died
// before that.
func (k *keeper) taken() bool {
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 50*time.Millisecond) {
		left := pending(controlFile, unix.SIOCOUTQ)
		for _, fd := range k.Streams {
			if fd > 0 {
				left += pending(fd, unix.TIOCINQ)
			}
		}
		// Asked last: with the engine goes what it had not read of our messages.
		if hungUp(controlFile) {
			return false
		}
		if left == 0 {
			return true
		}
		select {
		case <-k.free:
			return !hungUp(controlFile)
		case <-time.After(wait):
		}
	}
}

// pending is how many bytes wait, 0 when that can't be told.
func pending(fd int, what uint) int {
	n, err := unix.IoctlGetInt(fd, what)
	if err != nil {
		return 0
	}
	return n
}

func hungUp(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLHUP != 0
}

// drain reads what is in a pipe, at most what one can hold while nobody writes.
func (k *keeper) drain(n, fd int) {
	buf := make([]byte, 64<<10)
	for most := maxKept; most > 0; {
		waiting := min(pending(fd, unix.TIOCINQ), most, len(buf))
		if waiting == 0 {
			return
		}
		got, err := unix.Read(fd, buf[:waiting])
		if got <= 0 || err != nil {
			return
		}
		_, _ = k.read[n].Write(buf[:got])
		most -= got
	}
}

// write keeps what there is by now. How says what is about to end the run, if
// it has not ended itself; "" is nothing yet. What can't be written is lost: there
// is nobody to tell.
func (k *keeper) write(how string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept.Lost.IsZero() {
		k.kept.Lost = time.Now()
	}
	if how != "" && k.kept.How == "" {
		k.kept.How, k.kept.Ended = how, time.Now()
	}
	for n, fd := range k.Streams {
		if fd > 0 {
			k.drain(n, fd)
		}
	}
	all, mask := k.kept, masks.NewMask(k.Secrets)
	all.Stdout, all.Stderr = k.masked(mask, 0), k.masked(mask, 1)
	all.Cut = k.read[0].Cut() || k.read[1].Cut()
	if k.put(all) != nil { // a full disk may have room for the outcome
		all.Stdout, all.Stderr, all.Cut = nil, nil, true
		_ = k.put(all)
	}
}

// masked is what was read of a stream, the end of it if it is too much.
func (k *keeper) masked(mask *masks.Mask, n int) []byte {
	text := mask.Rest(k.read[n].Bytes())
	return bytes.Clone(text[max(0, len(text)-maxKept):])
}

// put writes the file, in one step for who reads it.
func (k *keeper) put(all Kept) error {
	data, err := core.Encode(all)
	if err != nil {
		return err
	}
	half := k.Name + keptHalf
	fd, err := unix.Openat(k.Dir, half, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	f := os.NewFile(uintptr(fd), half)
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = unix.Renameat(k.Dir, half, k.Dir, k.Name)
	}
	if err != nil {
		_ = unix.Unlinkat(k.Dir, half, 0)
	}
	return err
}

// Keep has a run's init keep, when the engine dies, how the run ended and what
// the engine had not read of its output: Supervisor.Collect gives it to the next
// engine. As long as the engine lives nobody else reads; but the run's pipes stay
// open until its init has gone, whoever closes our ends.
type Keep struct {
	// Stdout has its standard output kept beside its standard error.
	Stdout bool
	// Mask is what of it must not be kept in clear.
	Mask *masks.Mask
}

// keeping is what an order says of it.
type keeping struct {
	Name    string // of the file, below Dir
	Dir     int    // descriptor of the directory
	Streams [2]int // descriptors of our ends of standard output and error; 0 is not kept
	Whose   Whose
	Secrets map[string]string
}

// keeps plans it, with the files that it needs.
func (s *Supervisor) keeps(spec Spec, p *Process, named func(*os.File) int) (*keeping, error) {
	if spec.Keep == nil || s.opt.Keep == "" {
		return nil, nil
	}
	dir, err := s.keepDir()
	if err != nil {
		return nil, err
	}
	k := &keeping{Name: rand.Text()[:keptName] + keptSuffix, Dir: named(dir), Whose: spec.Whose, Secrets: spec.Keep.Mask.Values()}
	if p.Stderr != nil {
		k.Streams[1] = named(p.Stderr)
	}
	if spec.Keep.Stdout {
		k.Streams[0] = named(p.Stdout)
	}
	return k, nil
}

// keepDir opens the directory of what is kept, once.
func (s *Supervisor) keepDir() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		return s.kept, nil
	}
	if err := os.MkdirAll(s.opt.Keep, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for what runs leave: %w", err)
	}
	dir, err := os.OpenFile(s.opt.Keep, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the place for what runs leave: %w", err)
	}
	s.kept = dir
	return dir, nil
}

// serving is how many tasks an init remembers at a time: the messages are small,
// and no process serves more.
const serving = 64

// Serves tells the init that the process is at work on a task from now on, or no
// more: its log gets what is kept. A run of a task's own needs no such word.
func (p *Process) Serves(task string, on bool) {
	if p.keeps {
		p.tell(wish{Kind: wishServe, Task: task, On: on})
	}
}
