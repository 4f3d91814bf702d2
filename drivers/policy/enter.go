package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeWord in place of a command line tries the jail and runs nothing.
const probeWord = "-probe"

// waitWord in place of all arguments waits until they come through the file
// orderFile, parted by zero bytes. A jail can so be begun before it is known
// what for.
const (
	waitWord  = "-wait"
	orderFile = 3
	maxOrder  = 64 << 10
)

// exitJail is the exit status of a process that could not make its jail.
const exitJail = 125

// What a program may take.
const (
	maxCPU       = 2         // seconds of processor
	maxMemory    = 512 << 20 // bytes of address space
	maxFiles     = 32        // open at once
	maxProcesses = 16        // with threads; not of root
)

// limits are set last of all.
var limits = [...]struct {
	what  uintptr
	bound [2]uint64
}{
	{unix.RLIMIT_CPU, [2]uint64{maxCPU, maxCPU}},
	{unix.RLIMIT_FSIZE, [2]uint64{}},
	{unix.RLIMIT_CORE, [2]uint64{}},
	{unix.RLIMIT_NOFILE, [2]uint64{maxFiles, maxFiles}},
	{unix.RLIMIT_NPROC, [2]uint64{maxProcesses, maxProcesses}},
	{unix.RLIMIT_AS, [2]uint64{maxMemory, maxMemory}},
}

// Enter is what the re-executed program does: it jails itself and becomes the
// policy. args are the policy's directory and its command line. It returns
// only when that failed, with the exit status.
//
// The order matters. The jail is of this thread, so the thread is locked
// first. The bounds would hit the runtime's own threads and memory too, so
// they are set last, and between them and execve nothing is allocated.
func Enter(args []string, errs io.Writer) int {
	if err := enter(args); err != nil {
		fmt.Fprintf(errs, "jail: %v\n", err)
	}
	return exitJail
}

// awaited are the arguments that come in their time; none when whoever waits
// for this process has gone.
func awaited() ([]string, error) {
	from := os.NewFile(orderFile, "order")
	order, err := io.ReadAll(io.LimitReader(from, maxOrder))
	_ = from.Close()
	if err != nil {
		return nil, fmt.Errorf("wait for the policy: %w", err)
	}
	return strings.Split(string(order), "\x00"), nil
}

func enter(args []string) (err error) {
	if len(args) == 1 && args[0] == waitWord {
		if args, err = awaited(); err != nil {
			return err
		}
	}
	if len(args) < 2 {
		return errors.New("no policy to run")
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new rights: %w", err)
	}
	probe := args[1] == probeWord
	path, argv := "/", args[1:]
	if !probe {
		found, err := exec.LookPath(args[1])
		if err != nil {
			return fmt.Errorf("find %s: %w", args[1], err)
		}
		path = found
	}
	if err := confine(args[0]); err != nil {
		return err
	}
	if err := narrow(); err != nil {
		return err
	}
	file, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	words, err := pointers(argv)
	if err != nil {
		return err
	}
	env, err := pointers(environment)
	if err != nil {
		return err
	}
	for i := range limits {
		if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, limits[i].what, uintptr(unsafe.Pointer(&limits[i].bound)), 0, 0, 0); errno != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, exitJail, 0, 0)
		}
	}
	if probe {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(file)), uintptr(unsafe.Pointer(&words[0])), uintptr(unsafe.Pointer(&env[0])))
	unix.RawSyscall(unix.SYS_EXIT_GROUP, exitJail, 0, 0)
	return nil
}

func pointers(of []string) ([]*byte, error) {
	out := make([]*byte, 0, len(of)+1)
	for _, s := range of {
		p, err := unix.BytePtrFromString(s)
		if err != nil {
			return nil, fmt.Errorf("pass %q on: %w", s, err)
		}
		out = append(out, p)
	}
	return append(out, nil), nil
}
