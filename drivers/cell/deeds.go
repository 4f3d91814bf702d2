package cell

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// deed is something that the wall refuses and a person should know of.
type deed struct {
	name  string // one word
	tried string // what a program tried to do
	// usual says that harmless programs try it too, and go on without.
	usual bool
	calls []numbered
}

// numbered is a call of the kernel.
type numbered struct {
	call uint32
	name string
}

// Deeds that their arguments tell, and not their number alone.
const (
	deedSpaces   = "spaces"
	deedTerminal = "terminal"
	deedInit     = "init"
	deedRaw      = "raw"
	deedFamily   = "family"
	deedNetwork  = "network"
	deedLook     = "look" // a reader's
	deedSetID    = "setid"
	deedDevice   = "device"
)

// deeds are all of them. Calls that no run needs are refused by their number.
var deeds = [...]deed{
	{name: "mount", tried: "change what is mounted", calls: []numbered{
		{unix.SYS_MOUNT, "mount"},
		{unix.SYS_UMOUNT2, "umount2"},
		{unix.SYS_PIVOT_ROOT, "pivot_root"},
		{unix.SYS_FSOPEN, "fsopen"},
		{unix.SYS_FSCONFIG, "fsconfig"},
		{unix.SYS_FSMOUNT, "fsmount"},
		{unix.SYS_FSPICK, "fspick"},
		{unix.SYS_OPEN_TREE, "open_tree"},
		{unix.SYS_MOVE_MOUNT, "move_mount"},
		{unix.SYS_MOUNT_SETATTR, "mount_setattr"},
	}},
	{name: "root", tried: "change its root directory", calls: []numbered{{unix.SYS_CHROOT, "chroot"}}},
	{name: deedSpaces, tried: "make name spaces of its own", usual: true}, // browsers and sandboxes
	{name: "join", tried: "enter the name spaces of another process", calls: []numbered{{unix.SYS_SETNS, "setns"}}},
	{name: "handle", tried: "open a file past its path", calls: []numbered{{unix.SYS_OPEN_BY_HANDLE_AT, "open_by_handle_at"}}},
	{name: "keys", tried: "use the kernel's keys", usual: true, calls: []numbered{ // Kerberos
		{unix.SYS_KEYCTL, "keyctl"}, {unix.SYS_ADD_KEY, "add_key"}, {unix.SYS_REQUEST_KEY, "request_key"},
	}},
	{name: "bpf", tried: "load a program into the kernel", calls: []numbered{{unix.SYS_BPF, "bpf"}}},
	{name: "faults", tried: "take page faults in hand", calls: []numbered{{unix.SYS_USERFAULTFD, "userfaultfd"}}},
	{name: "counters", tried: "count events of the processor", usual: true, calls: []numbered{{unix.SYS_PERF_EVENT_OPEN, "perf_event_open"}}},
	{name: "module", tried: "change the kernel's modules", calls: []numbered{
		{unix.SYS_INIT_MODULE, "init_module"}, {unix.SYS_FINIT_MODULE, "finit_module"}, {unix.SYS_DELETE_MODULE, "delete_module"},
	}},
	{name: "kernel", tried: "start another kernel", calls: []numbered{{unix.SYS_KEXEC_LOAD, "kexec_load"}, {unix.SYS_KEXEC_FILE_LOAD, "kexec_file_load"}}},
	{name: "reboot", tried: "restart the machine", calls: []numbered{{unix.SYS_REBOOT, "reboot"}}},
	{name: "machine", tried: "change the machine's settings", calls: []numbered{
		{unix.SYS_SWAPON, "swapon"},
		{unix.SYS_SWAPOFF, "swapoff"},
		{unix.SYS_ACCT, "acct"},
		{unix.SYS_QUOTACTL, "quotactl"},
		{unix.SYS_SETHOSTNAME, "sethostname"},
		{unix.SYS_SETDOMAINNAME, "setdomainname"},
	}},
	{name: "clock", tried: "set the machine's clock", calls: []numbered{{unix.SYS_SETTIMEOFDAY, "settimeofday"}, {unix.SYS_CLOCK_SETTIME, "clock_settime"}}},
	{name: "log", tried: "read the kernel's log", usual: true, calls: []numbered{{unix.SYS_SYSLOG, "syslog"}}},
	{name: "watch", tried: "watch the machine's files", usual: true, calls: []numbered{{unix.SYS_FANOTIFY_INIT, "fanotify_init"}}},
	{name: deedSetID, tried: "leave a file that others would run as its owner"},
	{name: deedDevice, tried: "make a device"},
	{name: deedTerminal, tried: "type into a terminal"},
	{name: deedInit, tried: "change what holds it"},
	{name: deedRaw, tried: "open a raw socket", usual: true}, // ping
	{name: deedFamily, tried: "open a socket of a rare family"},
	{name: deedNetwork, tried: "use the network", usual: true},
	{name: deedLook, tried: "look into another process", calls: []numbered{
		{unix.SYS_PTRACE, "ptrace"},
		{unix.SYS_PROCESS_VM_READV, "process_vm_readv"},
		{unix.SYS_PROCESS_VM_WRITEV, "process_vm_writev"},
		{unix.SYS_PIDFD_GETFD, "pidfd_getfd"},
	}},
}

// deedOf finds one by its name.
func deedOf(name string) (deed, bool) {
	i := slices.IndexFunc(deeds[:], func(d deed) bool { return d.name == name })
	if i < 0 {
		return deed{}, false
	}
	return deeds[i], true
}

// deedBy tells what a refused call of a run is, and the call's name; "" for
// what is no deed. Network says that the run is parted from the machine's.
func deedBy(c *call, network bool) (deed, call string) {
	switch c.number {
	case unix.SYS_UNSHARE:
		return deedSpaces, "unshare"
	case unix.SYS_CLONE:
		return deedSpaces, "clone"
	case unix.SYS_IOCTL:
		return deedTerminal, "ioctl"
	case unix.SYS_SOCKET:
		switch family := uint32(c.args[0]); {
		case family == unix.AF_PACKET:
			return deedRaw, "socket"
		case family != unix.AF_INET && family != unix.AF_INET6:
			return deedFamily, "socket"
		case network:
			return deedRaw, "socket"
		}
		return deedNetwork, "socket"
	}
	if deed, name := c.leaves(); deed != "" {
		return deed, name
	}
	for _, o := range toOthers {
		if o.call == c.number {
			return deedInit, o.name
		}
	}
	for i := range deeds {
		for _, n := range deeds[i].calls {
			if n.call == c.number {
				return deeds[i].name, n.name
			}
		}
	}
	return "", ""
}

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
