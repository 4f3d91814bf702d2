package cell

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// What a run leaves behind outlives its wall: a program that others run as its
// owner, or a device, must not be among it. A directory of these bits is harmless,
// and no call says whether it is about one.

const setID = unix.S_ISUID | unix.S_ISGID

// moding is a call that gives a file a mode, and where it has that.
type moding struct {
	name string
	at   uint32
}

// modings are those of all architectures, by number, beside what makes files by
// opening them.
func modings() map[uint32]moding {
	all := map[uint32]moding{
		unix.SYS_FCHMOD: {"fchmod", atSecond}, unix.SYS_FCHMODAT: {"fchmodat", atThird}, unix.SYS_FCHMODAT2: {"fchmodat2", atThird},
		unix.SYS_MKNODAT: {"mknodat", atThird},
	}
	maps.Copy(all, elderModings())
	return all
}

// makers are those of them that make special files.
func makers() []uint32 { return append([]uint32{unix.SYS_MKNODAT}, elderMakers...) }

// refuseSetID answers who wants a file that becomes its owner, or a device. Files
// of set-gid are refused unheard: tools that change a directory's mode name the bit
// that it has already.
func (p *program) refuseSetID(answer uint32) {
	all := modings()
	for _, call := range slices.Sorted(maps.Keys(all)) {
		p.refuseBits(answer, call, all[call].at, unix.S_ISUID)
		p.refuseBits(refusal(unix.EPERM), call, all[call].at, unix.S_ISGID)
	}
	made := opens()
	for _, call := range slices.Sorted(maps.Keys(made)) {
		p.refuseMade(answer, call, made[call], made[call]+8, setID)
	}
	for _, call := range makers() {
		for _, kind := range []uint32{unix.S_IFCHR, unix.S_IFBLK} {
			p.refuseMasked(answer, call, all[call].at, unix.S_IFMT, kind)
		}
	}
	// What it makes is behind a pointer: programs fall back to openat.
	p.refuse(unix.SYS_OPENAT2, refusal(unix.ENOSYS))
	p.refuseBits(refusal(unix.EINVAL), unix.SYS_RENAMEAT2, atFifth, unix.RENAME_WHITEOUT) // it leaves a device
}

// leaves tells whether a refused call is such, and its name.
func (c *call) leaves() (deed, name string) {
	if flags, is := opens()[c.number]; is {
		if mode := c.at(flags + 8); c.at(flags)&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0 && mode&setID != 0 {
			return deedSetID, "open"
		}
		return "", ""
	}
	m, is := modings()[c.number]
	if !is {
		return "", ""
	}
	kind := c.at(m.at) & unix.S_IFMT
	switch {
	case slices.Contains(makers(), c.number) && (kind == unix.S_IFCHR || kind == unix.S_IFBLK):
		return deedDevice, m.name
	case c.at(m.at)&setID != 0:
		return deedSetID, m.name
	}
	return "", ""
}

// at is the argument that a filter finds at a place.
func (c *call) at(place uint32) uint32 { return uint32(c.args[(place-atFirst)/8]) }
