package cell

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	cmdline "swarmdeck/drivers/cell/pin/named"
	"swarmdeck/engine/core"
)

// start starts the command of an order, from a thread that has given up all
// that the command must not have: a child gets what its thread has. The thread
// is of no use afterwards, and ends.
func (o *order) start() (pid int, missing []string, err error) {
	runtime.LockOSThread()
	// The words of the command's descriptors: nothing else is handed on.
	attr := &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: !o.Tty, Setsid: o.Tty, Setctty: o.Tty}, // a session's leader leads a group as well
	}
	if o.User != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: o.User.UID, Gid: o.User.GID, Groups: []uint32{}}
		if o.Tty { // who sits at it opens it by name
			_ = unix.Fchown(0, int(o.User.UID), -1)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if o.Profile != Open {
		if missing, err = o.confine(); err != nil {
			return 0, nil, err
		}
	}
	for _, p := range o.pins {
		if err := p.holds(); err != nil {
			return 0, nil, err
		}
	}
	path, argv := o.Limits.through(o.Path, o.Argv)
	if pid, _, err = syscall.StartProcess(path, argv, attr); err != nil {
		return 0, nil, fmt.Errorf("execute %s: %w", o.Path, err)
	}
	return pid, missing, nil
}

// confine gives up rights for good. What a system can't do is named; a
// command that nothing would hold at all is not started.
func (o *order) confine() (missing []string, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("give up new rights: %w", err)
	}
	if o.User == nil && os.Geteuid() == 0 {
		if err := dropRights(); err != nil {
			return nil, err
		}
	}
	if o.User == nil {
		if err := dropCaps(); err != nil {
			return nil, err
		}
	}
	abi, err := landlockABI()
	if o.Unscoped {
		abi = min(abi, scopesSignals-1)
	}
	write, release := o.Write, func() {}
	if o.Places == nil { // the paths are those of everybody
		write, release = straightened(o.Write)
	}
	defer release()
	if err == nil {
		err = see(abi, o.Read, write)
	}
	if err != nil {
		if o.Places == nil {
			return nil, noWall{fmt.Errorf("there are neither name spaces nor Landlock: %w", err)}
		}
		missing = append(missing, layerLandlock)
	}
	b := bounds{profile: o.Profile, network: o.Network && (o.Profile != Reader || o.Ways || len(o.Ports) > 0), spaces: o.Spaces, abi: abi}
	asked, err := b.narrow()
	if err != nil {
		if !o.Network {
			return nil, noWall{fmt.Errorf("there are neither name spaces nor seccomp: %w", err)}
		}
		missing = append(missing, layerSeccomp)
	}
	if asked >= 0 {
		go (&listener{asked: asked, network: b.network, heard: map[string]bool{}}).listen()
	}
	return missing, nil
}

// Bits of a thread's securebits, with their locks: root has no rights by being root.
const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3

// dropRights takes the rights of root from this thread and what it starts.
func dropRights() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("give up root: %w", err)
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	return nil
}

// dropCaps takes all capabilities from this thread, and what it could hand on.
func dropCaps() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

func splitZero(data []byte) []string {
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

// ErrNoWall is wrapped by the refusal of a run that nothing here would hold.
var ErrNoWall = errors.New("nothing on this system holds it")

// noWall is an error of making the wall, not the command's.
type noWall struct{ error }

func (e noWall) Unwrap() error { return e.error }

// NewSpec is what starts an agent's command; an empty or relative dir starts
// from base. The error names the field of the agent that is wrong.
func NewSpec(command []string, env map[string]string, dir, base string) (Spec, error) {
	if err := CheckCommand("command", command); err != nil {
		return Spec{}, err
	}
	if err := CheckEnv(env); err != nil {
		return Spec{}, err
	}
	abs, err := CheckDir(dir, base)
	if err != nil {
		return Spec{}, err
	}
	return Spec{Argv: command, Env: env, Dir: abs}, nil
}

// Line is the command as the files that it names are found.
func (s Spec) Line() cmdline.Line {
	program, err := find(s.Argv[0], s.Env, s.Dir)
	if err != nil {
		program = ""
	}
	return cmdline.Line{Argv: s.Argv, Program: program, Dir: s.Dir, Env: s.Env}
}

// Available reports whether an agent's command could be started now.
func (s Spec) Available() error {
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return core.Invalid("dir", s.Dir, "an existing directory")
	}
	if _, err := find(s.Argv[0], s.Env, s.Dir); err != nil {
		why := "a program that exists in PATH, or its path"
		if errors.Is(err, os.ErrPermission) {
			why = "a program that may be executed"
		}
		return core.Invalid("command", s.Argv[0], why)
	}
	return nil
}

// Limited reports whether one of the run's Limits ended it.
func (e Exit) Limited() bool {
	return e.Signal == unix.SIGXCPU || e.Signal == unix.SIGXFSZ || e.Overran > 0
}

// Describe says how it ended: "exited with status 1".
func (e Exit) Describe() string {
	if e.Why != "" {
		return e.Why
	}
	if e.Overran > 0 {
		return fmt.Sprintf("was ended because it exceeded its memory of %d MiB", e.Overran>>20)
	}
	if e.Signal != 0 {
		return "was ended by " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}
