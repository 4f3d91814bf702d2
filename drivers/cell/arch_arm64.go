package cell

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// elderChanges are calls that other architectures have and this one has not.
var elderChanges []uint32

// elderModings are calls that other architectures have and this one has not.
func elderModings() map[uint32]moding { return nil }

// elderMakers are such calls that make special files.
var elderMakers []uint32

// opens are the calls that open a file, and where in them their flags are.
func opens() map[uint32]uint32 {
	return map[uint32]uint32{unix.SYS_OPENAT: atThird}
}
