package cell

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"

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
	below := filepath.Join(b.root, ".lower"+strconv.Itoa(i))
	if err := b.put(lower, below, true); err != nil {
		return err
	}
	at, err := b.target(filepath.Join(b.root, p.To), true)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	err = b.layered(i, p, at, below)
	if err != nil && p.Plain {
		var fd int
		if fd, err = detached(place{From: below}); err == nil {
			err = b.put(fd, filepath.Join(b.root, p.To), true)
			_ = unix.Close(fd)
		}
	}
	return errors.Join(err, unix.Unmount(below, unix.MNT_DETACH)) // the overlay has its own view of it
}

// layered mounts the overlay over an open directory.
func (b *builder) layered(i int, p place, at int, below string) error {
	to := filepath.Join(b.root, p.To)
	work := filepath.Join(b.root, p.Work)
	if p.Work != "" {
		if lock, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			if unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB) == nil { // until this process ends
				fd, err := b.target(work, true)
				if err == nil {
					_ = unix.Close(fd)
					if err = stack(below, to, work, to); err == nil {
						return nil
					}
				}
			}
			_ = unix.Close(lock)
		}
	}
	above := filepath.Join(b.root, ".upper"+strconv.Itoa(i))
	options := "mode=755,size=25%"
	if p.UID != 0 {
		options += fmt.Sprintf(",uid=%d,gid=%d", p.UID, p.UID)
	}
	if err := b.tmpfs(above, options); err != nil {
		return err
	}
	defer func() { _ = unix.Unmount(above, unix.MNT_DETACH) }()
	upper, work := filepath.Join(above, "upper"), filepath.Join(above, "work")
	for _, dir := range []string{upper, work} {
		fd, err := b.target(dir, true)
		if err != nil {
			return err
		}
		_ = unix.Close(fd)
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
