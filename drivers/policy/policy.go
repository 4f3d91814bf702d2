// Package policy runs policies that are programs, each in a cell of its own.
//
// The program is a reader: it reads the system's programs and libraries and its
// own file, writes nothing that lasts, opens no socket of any kind, gains no
// right, and has bounds on memory, processor, processes and files. It gets one
// JSON document and must answer one judge.Reply within the deadline. Whatever
// else it does is a fault, and a fault asks a person.
//
// Where a system holds no reader the program runs with a deadline and a clean
// environment only, and every reply says that it was not jailed.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/judge"
)

// Bounds of one decision.
const (
	// defaultDeadline is generous: an interpreter starts in some 20 ms, and a
	// busy machine takes ten times that.
	defaultDeadline = 1500 * time.Millisecond
	defaultIdle     = time.Minute
	maxStderr       = 4 << 10
)

// What a program may take.
const (
	maxCPU       = 2         // seconds of processor
	maxMemory    = 512 << 20 // bytes of address space
	maxFiles     = 32        // open at once
	maxProcesses = 64        // with threads, and for an ordinary user with those of the cell's init
)

// environment is all that a program gets of the usual.
func environment() map[string]string {
	return map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
}

// Options of New.
type Options struct {
	// Supervisor starts the programs, as readers.
	Supervisor *cell.Supervisor
	// Dir is where a directory for the programs' files is made, which everybody
	// can read and Close removes; "" means the system's for temporary files.
	Dir string
	// Deadline of one decision; 0 means 1.5 s.
	Deadline time.Duration
	// Idle is how long a program that stays goes on without being asked. 0 means
	// a minute.
	Idle time.Duration
	// Unjailed runs programs as where the system can't jail. For tests.
	Unjailed string
}

// Runner runs policy programs. Its methods may be called from any goroutine.
type Runner struct {
	opt Options

	last atomic.Uint32 // program started

	mu     sync.Mutex
	dir    string // of the programs' files; "" not made yet
	closed bool
	tried  bool   // whether readers can be held here
	why    string // they can't

	servers servers
}

var _ judge.Programs = (*Runner)(nil)

// New makes a runner. It tries the jail only when it is first needed.
func New(opt Options) (*Runner, error) {
	dir, err := filepath.Abs(cmp.Or(opt.Dir, os.TempDir()))
	if err != nil {
		return nil, fmt.Errorf("find the directory of policies: %w", err)
	}
	opt.Dir = dir
	opt.Deadline, opt.Idle = cmp.Or(opt.Deadline, defaultDeadline), cmp.Or(opt.Idle, defaultIdle)
	r := &Runner{opt: opt}
	r.servers.init(opt.Idle)
	r.tried, r.why = opt.Unjailed != "", opt.Unjailed
	return r, nil
}

// Close ends the programs that stay and removes all files. What is asked afterwards is a person's to judge.
func (r *Runner) Close() error {
	r.servers.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.dir == "" {
		return nil
	}
	return os.RemoveAll(r.dir)
}

func (r *Runner) Jailed(ctx context.Context) (bool, string) {
	jailed, err := r.jail(ctx)
	if err != nil {
		return false, err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return jailed, r.why
}

// jail tries once whether a reader can be held here. Trouble that may pass, as
// when there are too many processes, is no answer: it is tried again.
func (r *Runner) jail(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false, errClosed
	}
	if err := r.makeDir(); err != nil {
		return false, err
	}
	if r.tried {
		return r.why == "", nil
	}
	exit, err := r.opt.Supervisor.Run(ctx, r.spec([]string{"true"}, r.dir, cell.Reader), nil, nil, nil)
	switch {
	case errors.Is(err, os.ErrPermission) || errors.Is(err, cell.ErrNoWall):
		r.why = err.Error()
	case err != nil:
		return false, fmt.Errorf("try the jail: %w", err)
	case exit.Code != 0:
		return false, fmt.Errorf("try the jail: it %s", exit.Describe())
	}
	r.tried = true
	return r.why == "", nil
}

// errClosed is what is said of decisions after Close.
var errClosed = errors.New("policies are being closed")

// Programs of root run as users that nobody else is, each as another: the
// bound on processes is one of the user's.
const (
	firstUID = 1_800_000_000
	userIDs  = 1 << 16
)

// spec is how a program of a directory is started.
func (r *Runner) spec(argv []string, dir string, profile cell.Profile) cell.Spec {
	n := r.last.Add(1)
	s := cell.Spec{
		Run: fmt.Sprintf("policy-%d", n), Argv: argv, Dir: dir, Env: environment(), Wall: cell.Wall{Profile: profile},
		Limits: cell.Limits{CPU: maxCPU, Files: maxFiles, Size: 1},
	}
	if profile != cell.Open {
		s.Limits.Memory, s.Limits.Processes = maxMemory, maxProcesses
		if os.Geteuid() == 0 {
			id := firstUID + n%userIDs
			s.User = &cell.User{UID: id, GID: id}
		}
	}
	return s
}

// plan is how a program is to be started, and whether it is jailed then.
func (r *Runner) plan(ctx context.Context, p *judge.Program) (spec cell.Spec, jailed bool, err error) {
	if jailed, err = r.jail(ctx); err != nil {
		return spec, false, err
	}
	dir, err := r.place(p)
	if err != nil {
		return spec, false, err
	}
	profile := cell.Open
	if jailed {
		profile = cell.Reader
	}
	return r.spec(argv(p, dir), dir, profile), jailed, nil
}

// sanitised is text without escape sequences, controls and what turns or
// hides text; lines stay.
func sanitised(text []byte) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(string(text), "\uFFFD") {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			out.WriteRune('\uFFFD')
		default:
			out.WriteRune(r)
		}
	}
	return strings.TrimSpace(out.String())
}

// lastLine is the end of what a program said, for the reason of a fault.
func lastLine(said string) string {
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	return said
}
