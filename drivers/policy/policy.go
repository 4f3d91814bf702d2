package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"swarmdeck/engine/judge"
)

// Bounds of one decision.
const (
	// defaultDeadline is generous: an interpreter starts in some 20 ms, and a
	// busy machine takes ten times that.
	defaultDeadline = 1500 * time.Millisecond
	defaultIdle     = time.Minute
	waitDelay       = 200 * time.Millisecond
	maxStderr       = 4 << 10
	nobody          = 65534
)

// environment is all that a program gets.
var environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/"}

// Options of New.
type Options struct {
	// Jail is the command line by which this program re-executes itself into
	// Enter; its further arguments follow.
	Jail []string
	// Dir is where a directory for the programs' files is made, which everybody
	// can read and Close removes; "" means the system's for temporary files.
	Dir string
	// Deadline of one decision; 0 means 1.5 s.
	Deadline time.Duration
	// Idle is how long what waits for decisions stays without any: programs
	// that stay, and jails that wait for their program. 0 means a minute.
	Idle time.Duration
	// Unjailed runs programs as where the system can't jail. For tests.
	Unjailed string
}

// Runner runs policy programs. Its methods may be called from any goroutine.
type Runner struct {
	opt Options

	mu     sync.Mutex
	dir    string // of the programs' files; "" not made yet
	closed bool
	state  int // 0 not known yet
	why    string
	id     identity // that programs run as outside their name space

	cells   cells
	servers servers
}

var _ judge.Programs = (*Runner)(nil)

// What is known of the jail.
const (
	jailed = 1 + iota
	bare
)

// New makes a runner. It tries the jail only when it is first needed.
func New(opt Options) (*Runner, error) {
	dir, err := filepath.Abs(cmp.Or(opt.Dir, os.TempDir()))
	if err != nil {
		return nil, fmt.Errorf("find the directory of policies: %w", err)
	}
	opt.Dir = dir
	opt.Deadline, opt.Idle = cmp.Or(opt.Deadline, defaultDeadline), cmp.Or(opt.Idle, defaultIdle)
	r := &Runner{opt: opt}
	r.cells.init(opt.Idle, r.waiting)
	r.servers.init(opt.Idle)
	if opt.Unjailed != "" {
		r.state, r.why = bare, opt.Unjailed
	}
	return r, nil
}

// Close ends the programs that stay and the jails that wait, and removes all
// files. What is asked afterwards is a person's to judge.
func (r *Runner) Close() error {
	r.servers.close()
	r.cells.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.dir == "" {
		return nil
	}
	return os.RemoveAll(r.dir)
}

// Jailed implements judge.Programs.
func (r *Runner) Jailed(ctx context.Context) (bool, string) {
	state, why := r.jail(ctx)
	return state == jailed, why
}

// jail tries once what this system allows. Trouble that may pass, as when
// there are too many processes, is no answer: it is tried again.
func (r *Runner) jail(ctx context.Context) (int, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errClosed.Error()
	}
	if err := r.makeDir(); err != nil {
		return 0, err.Error()
	}
	if r.state != 0 {
		return r.state, r.why
	}
	for _, id := range identities() {
		state, why := r.try(ctx, id)
		if state == jailed {
			r.state, r.why, r.id = state, "", id
			return r.state, r.why
		}
		if state == 0 {
			return 0, why
		}
		r.why = why
	}
	r.state = bare
	return r.state, r.why
}

func (r *Runner) try(ctx context.Context, id identity) (int, string) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	cmd := r.jailCommand(id, []string{r.dir, probeWord})(ctx)
	said := &bounded{most: maxStderr}
	cmd.Stderr = said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return jailed, ""
	case forbids(err):
		return bare, "this system forbids name spaces: " + err.Error()
	case errors.As(err, &exit) && exit.ExitCode() == exitJail:
		return bare, cmp.Or(lastLine(sanitised(said.kept)), "this system forbids the limits of the jail")
	}
	return 0, "try the jail: " + err.Error()
}

// forbids reports an error of making a process that stays.
func forbids(err error) bool {
	return slices.ContainsFunc([]error{syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS},
		func(e error) bool { return errors.Is(err, e) })
}

// identity is who a program is outside its name space.
type identity struct{ uid, gid int }

// identities are those to try, the weakest first. Root's programs become
// nobody outside too, so that files and the bound on processes are kept from
// them; where nobody can't read this program they stay root without its rights.
func identities() []identity {
	own := identity{os.Geteuid(), os.Getegid()}
	if own.uid != 0 {
		return []identity{own}
	}
	return []identity{{nobody, nobody}, own}
}

// prison parts a process from everything: it is the first of its own process
// name space, so all that it starts ends with it.
func prison(id identity) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: id.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: id.gid, Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
		Setsid:      true,
	}
	if id.uid != os.Geteuid() {
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return attr
}
