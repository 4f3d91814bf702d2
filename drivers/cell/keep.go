package cell

import (
	"crypto/rand"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	masks "swarmdeck/engine/secret"
)

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
