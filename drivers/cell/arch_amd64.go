package cell

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// elderChanges are calls like refusedChanges that other architectures have not.
var elderChanges = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// elderModings are calls that give a file a mode and that other architectures have not.
func elderModings() map[uint32]moding {
	return map[uint32]moding{unix.SYS_CHMOD: {"chmod", atSecond}, unix.SYS_CREAT: {"creat", atSecond}, unix.SYS_MKNOD: {"mknod", atSecond}}
}

// elderMakers are those of them that make special files.
var elderMakers = []uint32{unix.SYS_MKNOD}

// opens are the calls that open a file, and where in them their flags are.
func opens() map[uint32]uint32 {
	return map[uint32]uint32{unix.SYS_OPENAT: atThird, unix.SYS_OPEN: atSecond}
}
