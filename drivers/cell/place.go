package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// place is one thing of a cell's file system. Places are made in order; a
// later one may lie within an earlier.
type place struct {
	Kind  string
	To    string // absolute
	From  string `json:",omitempty"`
	Write bool   `json:",omitzero"`  // of bind
	Map   int    `json:",omitzero"`  // of bind: descriptor of the user name space that says whose the files are; 0 is none
	Must  bool   `json:",omitzero"`  // without it the cell is not made
	Work  string `json:",omitempty"` // of overlay: a directory of the file system of To; "" keeps what is written in memory
	Plain bool   `json:",omitzero"`  // of overlay: To may be read only
	Real  bool   `json:",omitzero"`  // of bind: a link that now is on the way is not followed
	Pin   bool   `json:",omitzero"`  // of bind: nothing else may be seen there when the command starts
	UID   uint32 `json:",omitzero"`  // of tmpfs; 0 is the init's own
	Mode  uint32 `json:",omitzero"`  // of tmpfs
}

const (
	bind    = "bind"    // what is at From
	tmpfs   = "tmpfs"   // an empty directory in memory
	link    = "link"    // a symbolic link to From
	text    = "text"    // a file that holds From
	hide    = "hide"    // nothing, where something is
	overlay = "overlay" // what is at From, and what is written there apart
	dev     = "dev"     // the usual devices
	procs   = "procfs"
)

// builder makes a file system.
type builder struct {
	root   string      // where it is made
	trees  map[int]int // detached mounts by the index of their place
	hidden map[string]bool
	layers string // where the parts of overlays are, "" before there is one
	pins   []pinned
}

// pinned is a file that must be seen at a path.
type pinned struct {
	path string
	file unix.Stat_t
}

// holds reports a path at which something else is seen: whoever else may write
// the directory can put another file over the place, and the mount is gone.
func (p pinned) holds() error {
	var now unix.Stat_t
	if err := unix.Lstat(p.path, &now); err != nil {
		return fmt.Errorf("%s was taken away: %w", p.path, err)
	}
	if now.Dev != p.file.Dev || now.Ino != p.file.Ino {
		return fmt.Errorf("%s was exchanged: %w", p.path, unix.ESTALE)
	}
	return nil
}

// build makes the places the file system of this process, which has a mount
// name space of its own and may mount.
func build(places []place) ([]pinned, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("part the mounts: %w", err)
	}
	b := &builder{root: base(), trees: map[int]int{}, hidden: map[string]bool{}}
	for i, p := range places { // before anything covers them
		if p.Kind != bind && p.Kind != overlay {
			continue
		}
		fd, err := detached(p)
		if err != nil {
			if p.Must {
				return nil, fmt.Errorf("place %s: %w", p.To, err)
			}
			continue
		}
		b.trees[i] = fd
	}
	if err := unix.Mount("cell", b.root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m"); err != nil {
		return nil, fmt.Errorf("mount the root: %w", err)
	}
	for i, p := range places {
		if err := b.make(i, p); err != nil && p.Must {
			return nil, fmt.Errorf("place %s: %w", p.To, err)
		}
	}
	for to := range b.hidden {
		_ = setAttr(unix.AT_FDCWD, to, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err := setAttr(unix.AT_FDCWD, b.root, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return nil, fmt.Errorf("close the root: %w", err)
	}
	if err := os.Chdir(b.root); err != nil {
		return nil, err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return nil, fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return nil, fmt.Errorf("leave the old root: %w", err)
	}
	return b.pins, os.Chdir("/")
}

// base is a directory over which the new root is mounted.
func base() string {
	for _, dir := range []string{"/tmp", "/mnt", "/usr"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "/"
}

func setAttr(dir int, path string, flags uint, attr *unix.MountAttr) error {
	return unix.MountSetattr(dir, path, flags, attr)
}

// detached copies what a place is to show, with what it may be used for.
func detached(p place) (int, error) {
	at, name, flags := unix.AT_FDCWD, p.From, uint(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if p.Real {
		var err error
		if at, err = straight(p.From); err != nil {
			return -1, err
		}
		defer unix.Close(at)
		name, flags = "", flags|unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(at, name, flags)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if !p.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if p.Map > 0 {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(p.Map)
	}
	if err := setAttr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// straight opens what a path without links leads to: whoever can write a directory on
// the way may have put one there since it was looked at.
func straight(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

func (b *builder) make(i int, p place) error {
	to := filepath.Join(b.root, p.To)
	switch p.Kind {
	case bind:
		fd, ok := b.trees[i]
		if !ok {
			return os.ErrNotExist
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if p.Pin {
			b.pins = append(b.pins, pinned{p.To, st})
		}
		return b.put(fd, to, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	case overlay:
		return b.overlay(i, p)
	case tmpfs:
		options := fmt.Sprintf("mode=%o,size=25%%", p.Mode)
		if p.UID != 0 { // else it is this process's own: in a user name space root may be nobody
			options += fmt.Sprintf(",uid=%d,gid=%d", p.UID, p.UID)
		}
		return b.tmpfs(to, options)
	case link:
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.Symlink(p.From, to)
	case text:
		return b.text(to, p.From)
	case hide:
		return b.hide(p.To)
	case dev:
		return b.dev(to)
	case procs:
		return b.proc(to)
	}
	return fmt.Errorf("no such kind: %q", p.Kind)
}

// put mounts a detached tree.
func (b *builder) put(fd int, to string, dir bool) error {
	at, err := b.target(to, dir)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// target opens what a mount covers, and makes it unless it is there. A run that
// was here before may have left links on the way: none is followed, since they
// would lead through the machine's files, with more rights than the run has.
func (b *builder) target(to string, dir bool) (int, error) {
	const way = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open(b.root, way|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	names := strings.FieldsFunc(strings.TrimPrefix(to, b.root), func(r rune) bool { return r == '/' })
	for i, name := range names {
		next, err := unix.Openat(at, name, way, 0)
		if errors.Is(err, unix.ENOENT) {
			if err = create(at, name, dir || i < len(names)-1); err == nil {
				next, err = unix.Openat(at, name, way, 0)
			}
		}
		_ = unix.Close(at)
		if err != nil {
			return -1, fmt.Errorf("make %s: %w", name, err)
		}
		at = next
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			_ = unix.Close(at)
			return -1, fmt.Errorf("%s is a symbolic link", name)
		}
	}
	return at, nil
}

// create makes a directory or an empty file as the owner of where it is made,
// who may be somebody that root is not: files are shown to a run as its own.
func create(at int, name string, dir bool) error {
	do := func() error {
		if dir {
			return unix.Mkdirat(at, name, 0o755)
		}
		return unix.Mknodat(at, name, unix.S_IFREG|0o444, 0)
	}
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gid, _ := unix.SetfsgidRetGid(int(st.Gid))
	uid, _ := unix.SetfsuidRetUid(int(st.Uid))
	err := do()
	_, _ = unix.SetfsuidRetUid(uid)
	_, _ = unix.SetfsgidRetGid(gid)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		err = do()
	}
	return err
}

// tmpfs mounts an empty directory.
func (b *builder) tmpfs(to, options string) error {
	at, err := b.target(to, true)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.Mount("cell", "/proc/self/fd/"+strconv.Itoa(at), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func (b *builder) text(to, what string) error {
	own := filepath.Join(b.root, ".text")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	file := filepath.Join(own, strings.ReplaceAll(strings.TrimPrefix(to, b.root), "/", "_"))
	if err := os.WriteFile(file, []byte(what), 0o444); err != nil {
		return err
	}
	fd, err := detached(place{From: file})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.put(fd, to, false)
}

// hide covers what is at a path, if anything is. What is placed within it
// later is there.
func (b *builder) hide(path string) error {
	to := filepath.Join(b.root, path)
	info, err := os.Lstat(to)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		return nil // what it leads to is hidden by its own name
	case info.IsDir():
		b.hidden[to] = true
		return unix.Mount("cell", to, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=64k")
	}
	empty := filepath.Join(b.root, ".hidden")
	if err := os.WriteFile(empty, nil, 0); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, os.ErrPermission) {
		return err
	}
	fd, err := detached(place{From: empty})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.put(fd, to, false)
}

// devices of every cell.
var devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

func (b *builder) dev(to string) error {
	from := map[string]string{"console": terminalName()}
	for _, name := range devices {
		from[name] = "/dev/" + name
	}
	trees := map[string]int{}
	for name, path := range from {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		if err := setAttr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}); err == nil {
			trees[name] = fd
		}
	}
	if err := b.tmpfs(to, "mode=755,size=64k"); err != nil {
		return err
	}
	for name, fd := range trees {
		if err := b.put(fd, filepath.Join(to, name), false); err != nil {
			return err
		}
	}
	for name, at := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(at, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if err := b.tmpfs(filepath.Join(to, "shm"), "mode=1777,size=25%"); err != nil {
		return err
	}
	pts := filepath.Join(to, "pts")
	if err := os.Mkdir(pts, 0o755); err != nil {
		return err
	}
	// Without it there are no terminals in the cell, and nothing else is missing.
	_ = unix.Mount("devpts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	return nil
}

// What of /proc is the machine's or the init's, not the run's: read only, or not
// there.
var (
	fixed  = [...]string{"1", "sys", "irq", "bus", "fs", "sysrq-trigger"}
	masked = [...]string{"kcore", "keys", "key-users", "timer_list", "sched_debug", "kmsg", "kallsyms", "scsi", "acpi", "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo"}
)

func (b *builder) proc(to string) error {
	at, err := b.target(to, true)
	if err != nil {
		return err
	}
	_ = unix.Close(at)
	if err := unix.Mount("proc", to, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, name := range fixed {
		path := filepath.Join(to, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		fd, err := detached(place{From: path})
		if err != nil {
			return err
		}
		err = b.put(fd, path, info.IsDir())
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	for _, name := range masked {
		if err := b.hide(strings.TrimPrefix(filepath.Join(to, name), b.root)); err != nil {
			return err
		}
	}
	return nil
}
