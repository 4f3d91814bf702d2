package cell

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// overlay shows what is at From, with what is written there kept apart: in the
// directory that it covers, if that lasts and no other run of the same home
// writes it now, else in memory. Where there is no overlay, it is shown to be
// read alone if that is of use.
func (b *builder) overlay(i int, p place) error {
	lower, ok := b.trees[i]
	if !ok {
		return unix.ENOENT
	}
	defer unix.Close(lower)
	below, err := b.layer("lower", i)
	if err != nil {
		return err
	}
	if err := unix.MoveMount(lower, "", unix.AT_FDCWD, below, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return err
	}
	at, err := b.target(filepath.Join(b.root, p.To), true)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err = b.layered(i, p, at, below); err == nil || !p.Plain {
		return err
	}
	fd, err := detached(place{From: below})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.put(fd, filepath.Join(b.root, p.To), true)
}

// layer makes a directory for a part of an overlay. All lie in a place of the
// old root, which goes as a whole: each mount that is taken away by itself costs
// milliseconds.
func (b *builder) layer(name string, i int) (string, error) {
	if b.layers == "" {
		for _, dir := range []string{"/mnt", "/media", "/srv", "/usr"} {
			if info, err := os.Stat(dir); err == nil && info.IsDir() && dir != b.root {
				if err := unix.Mount("cell", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=25%"); err != nil {
					return "", err
				}
				b.layers = dir
				break
			}
		}
	}
	if b.layers == "" {
		return "", os.ErrNotExist
	}
	dir := filepath.Join(b.layers, name+strconv.Itoa(i))
	return dir, os.Mkdir(dir, 0o755)
}

// layered mounts the overlay over an open directory.
func (b *builder) layered(i int, p place, at int, below string) error {
	to := filepath.Join(b.root, p.To)
	if p.Work != "" {
		if lock, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			if unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB) == nil { // until this process ends
				work := filepath.Join(b.root, p.Work)
				if fd, err := b.target(work, true); err == nil {
					_ = unix.Close(fd)
					if err = stack(below, to, work, to); err == nil {
						return nil
					}
				}
			}
			_ = unix.Close(lock)
		}
	}
	upper, err := b.layer("upper", i)
	if err != nil {
		return err
	}
	work, err := b.layer("work", i)
	if err != nil {
		return err
	}
	if p.UID != 0 {
		for _, dir := range []string{upper, work} {
			_ = os.Lchown(dir, int(p.UID), int(p.UID)) // in a user name space it is its own already
		}
	}
	return stack(below, upper, work, to)
}

// stack mounts an overlay as the owner of what is written, who may be somebody
// that root is not: files are shown to a run as its own. The kernel shows one
// that it can't write read-only; that is refused.
func stack(lower, upper, work, to string) error {
	var st unix.Stat_t
	if err := unix.Stat(upper, &st); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&head, &rights[0]); err != nil {
		return err
	}
	gid, _ := unix.SetfsgidRetGid(int(st.Gid))
	uid, _ := unix.SetfsuidRetUid(int(st.Uid))
	_ = unix.Capset(&head, &rights[0]) // with another user some were laid down
	err := unix.Mount("cell", to, "overlay", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", lower, upper, work))
	_, _ = unix.SetfsuidRetUid(uid)
	_, _ = unix.SetfsgidRetGid(gid)
	if err == nil {
		var fs unix.Statfs_t
		if err = unix.Statfs(to, &fs); err == nil && fs.Flags&unix.ST_RDONLY != 0 {
			err = errors.Join(unix.EROFS, unix.Unmount(to, unix.MNT_DETACH))
		}
	}
	return err
}

// cache is a directory of the engine's user that a tool fills from the network,
// and where the tool looks for it below a HOME.
type cache struct {
	at    string
	plain bool // it is of use where nothing can be written to it
}

var caches = [...]cache{{"go/pkg/mod", true}, {".npm/_cacache", false}, {".cache/pip", true}, {".cache/uv", false}, {".cargo/registry", true}}

// cached are the caches of the engine's user that a worker has in its home. What
// it writes there is its own: the user's stays as it is.
func (s *Supervisor) cached(spec Spec) (all []tree) {
	home := cmp.Or(spec.Wall.Home, ownHome)
	mine, err := os.UserHomeDir()
	if named := spec.Env["HOME"]; err != nil || spec.Wall.Profile != Worker || named != "" && named != spec.Wall.Home || strings.ContainsAny(home, `,:\`) {
		return nil
	}
	hidden := s.hidden(spec.Dir, spec.Wall.Hide)
	for _, c := range caches {
		path := filepath.Join(mine, c.at)
		if c.at == caches[0].at { // which its user may have put elsewhere
			gopath, _, _ := strings.Cut(os.Getenv("GOPATH"), string(filepath.ListSeparator))
			path = cmp.Or(os.Getenv("GOMODCACHE"), filepath.Join(cmp.Or(gopath, filepath.Join(mine, "go")), "pkg/mod"))
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(real) || within(home, real) || slices.ContainsFunc(hidden, func(h string) bool { return within(real, h) || within(path, h) }) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			all = append(all, tree{path: real, as: filepath.Join(home, c.at), cache: true, plain: c.plain})
		}
	}
	return all
}
