package cell

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// elder are calls that other architectures have not.
func elder() map[uint32]change {
	return map[uint32]change{
		unix.SYS_CHMOD:  {what: setMode, path: 0, value: 1},
		unix.SYS_CHOWN:  {what: setOwner, path: 0, value: 1},
		unix.SYS_LCHOWN: {what: setOwner, path: 0, value: 1, same: true},
		unix.SYS_UTIME:  {what: setSeconds, path: 0, value: 1},
		unix.SYS_UTIMES: {what: setMicros, path: 0, value: 1},
	}
}

// refusedElders are such calls that nobody needs.
var refusedElders = []uint32{unix.SYS_FUTIMESAT}

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

// elderAsks are the calls that other architectures have in newer forms alone.
func elderAsks() map[uint32]ask {
	return map[uint32]ask{
		unix.SYS_STAT:     {what: askStat, dir: none, path: 0, to: 1, flags: none},
		unix.SYS_LSTAT:    {what: askStat, dir: none, path: 0, to: 1, flags: none, same: true},
		unix.SYS_ACCESS:   {what: askAccess, dir: none, path: 0, more: 1, flags: none},
		unix.SYS_READLINK: {what: askLink, dir: none, path: 0, to: 1, more: 2, flags: none, same: true},
		unix.SYS_OPEN:     {what: askOpen, dir: none, path: 0, more: 1, flags: none},
	}
}

// refusedElderAsks are such calls that nobody needs.
var refusedElderAsks = []uint32{unix.SYS_USTAT, unix.SYS_USELIB}
