package policy

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A network name space does not part sockets that are files: whoever runs a
// policy could reach the engine's own door, or a container daemon. So no
// socket can be made at all; and nothing that makes sockets, name spaces or
// mounts by another way, or looks into other processes.
var refused = []uint32{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_IO_URING_SETUP,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
}

// Where seccomp_data holds what a filter looks at.
const (
	atNumber = 0
	atArch   = 4
)

// x32 marks the calls of x86-64's other interface, whose numbers differ.
const x32 = 0x40000000

// narrow refuses those calls of the kernel to this thread, for good. Calls of
// another architecture end the process.
func narrow() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: atArch},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: architecture, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: atNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	for i, call := range refused {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(refused) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("refuse calls of the kernel: %w", errno)
	}
	return nil
}
