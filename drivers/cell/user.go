package cell

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is an account of the system, taken without its supplementary groups.
type User struct{ UID, GID uint32 }

// cellUID is whom root's walled runs run as: a user that nobody else is.
func (s *Supervisor) cellUID() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.opt.Instance))
	return 1_900_000_000 + h.Sum32()&0xffffff
}

// disguise makes a walled run of root that of nobody else: its files are shown
// to it as its own. Where the file system can't do that it runs as the owner of
// its directory; where that is root, as root without any right of root.
func (s *Supervisor) disguise(o *order, spec Spec, trees []tree, named func(*os.File) int) error {
	if spec.User != nil {
		return nil
	}
	numbers := map[uint32]int{}
	chosen := slices.Clone(trees)
	for i, t := range chosen {
		if isSystem(t.as, false) && !t.write && !t.pin {
			continue
		}
		owner, err := ownerOf(t.path)
		if err != nil {
			return BadDir{err}
		}
		space, err := s.standIn(owner)
		if err != nil || s.without(layerIDMap) || !mappable(t.path, space) {
			if !t.must {
				continue
			}
			o.lacks = append(o.lacks, layerIDMap)
			owner, err := ownerOf(spec.Dir)
			if err == nil && owner != 0 {
				o.User = &User{UID: owner, GID: owner}
				if kept, err := ownerOf(spec.Wall.Home); err == nil && kept == 0 { // it is the engine's until its first run
					_ = os.Lchown(spec.Wall.Home, int(owner), int(owner))
				}
			}
			return err
		}
		if numbers[owner] == 0 {
			numbers[owner] = named(space)
		}
		chosen[i].map_ = numbers[owner]
	}
	copy(trees, chosen)
	o.User = &User{UID: s.cellUID(), GID: s.cellUID()}
	return nil
}

// closed are the files and directories of a tree that not everybody may read.
func closed(tree string) (all []string) {
	_ = filepath.WalkDir(tree, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // it has gone
		}
		need := os.FileMode(0o004)
		if e.IsDir() {
			need = 0o005
		} else if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if err != nil || info.Mode()&need == need {
			return nil
		}
		all = append(all, path)
		if e.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	return all
}

// withLine is a file with one more line.
func withLine(path, line string) string {
	data, _ := os.ReadFile(path)
	return strings.TrimLeft(strings.TrimRight(string(data), "\n")+"\n"+line+"\n", "\n")
}

// ownerOf is whose a file is.
func ownerOf(path string) (uint32, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid, nil
	}
	return 0, fmt.Errorf("%s has no owner", path)
}

// standIn is a user name space by which files of an owner are the cell's own
// user's. It belongs to the supervisor.
func (s *Supervisor) standIn(owner uint32) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if f := s.maps[owner]; f != nil {
		return f, nil
	}
	f, err := userSpace(owner, s.cellUID())
	if err != nil {
		return nil, err
	}
	s.maps[owner] = f
	return f, nil
}

// userSpace makes a user name space with one user and one group: inside it
// they have the first number, outside the second.
func userSpace(inside, outside uint32) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer w.Close()
	ids := []syscall.SysProcIDMap{{ContainerID: int(inside), HostID: int(outside), Size: 1}}
	// A process that waits to be told its limits lives as long as is needed.
	cat, err := lookFor("cat")
	if err != nil {
		return nil, err
	}
	child, err := os.StartProcess(cat, []string{"cat"}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{r},
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user name space: %w", err)
	}
	defer func() {
		_ = child.Kill()
		_, _ = child.Wait()
	}()
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", child.Pid))
}

// mappable reports whether a directory's files can be shown as another's.
func mappable(dir string, space *os.File) bool {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(space.Fd()),
	}) == nil
}
