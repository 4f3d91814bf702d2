// Package safeopen opens files on behalf of others: agents, skills, imports.
//
// Below a Root no symbolic link is followed, whoever changes what meanwhile:
// each directory on the way is opened by its name in the one before. Only
// regular files are opened, so that nothing waits for a pipe or wakes a device.
// The engine's own files are refused under every name: they are compared by
// device and inode, which a hard link or a bind mount does not change. The
// contents of its own directories are known by the directories above them: a
// hard link that was made from inside one to elsewhere is not.
package safeopen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"swarmdeck/engine/core"
)

// Own is what belongs to the engine alone. A nil Own is nothing.
type Own struct {
	data  string   // absolute path of the data file
	files []string // absolute paths
	dirs  []string // with all that is in them
}

// run ends the name of the directory beside a data file that has all which is in no store.
// On a database each tenant has one of the tenant's name in it.
const run = ".run"

// Agents work below the directory forks of a run's, and what others ask for is done in works.
const forks, works = "trees", "work"

// OwnFiles is what belongs to the engine of a data file: the file, what lies
// beside it under its name, and more directories, such as its socket's.
func OwnFiles(data string, dirs ...string) (*Own, error) {
	data, err := filepath.Abs(data)
	if err != nil {
		return nil, core.Errorf(core.Internal, "find the data file: %v", err)
	}
	o := &Own{data: data}
	for _, suffix := range []string{"", ".key", ".secrets.key", ".hostkey"} {
		o.files = append(o.files, data+suffix)
	}
	o.dirs = append(o.dirs, data+run)
	for _, dir := range dirs {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, core.Errorf(core.Internal, "find an own directory: %v", err)
		}
		o.dirs = append(o.dirs, dir)
	}
	return o, nil
}

// inode is what a file is, whatever it is called.
type inode struct{ dev, ino uint64 }

func inodeOf(info fs.FileInfo) inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino}
}

// now is what the own files and directories are at this moment: a file can be
// made, or replaced, at any time.
type now struct {
	own   *Own
	files map[inode]bool
	dirs  map[inode]bool
	forks map[inode]bool // those of dirs in which agents work
	home  inode          // of the data file's directory
}

func (o *Own) now() now {
	n := now{own: o, files: map[inode]bool{}, dirs: map[inode]bool{}, forks: map[inode]bool{}}
	if o == nil {
		return n
	}
	for _, path := range o.files {
		if info, err := os.Stat(path); err == nil {
			n.files[inodeOf(info)] = true
		}
	}
	for _, path := range o.dirs {
		if info, err := os.Stat(path); err == nil {
			n.dirs[inodeOf(info)] = true
		}
	}
	n.below(o.data + run)
	// The data file may be a link to where it really is.
	if info, err := os.Stat(filepath.Dir(o.data)); err == nil {
		n.home = inodeOf(info)
	}
	return n
}

// below adds what is in a directory of the run, by tenants too: under another name that a
// mount gives it, it is known by itself. What can't be listed is so by what is above.
func (n now) below(dir string) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			n.dirs[inodeOf(info)] = true
			n.forks[inodeOf(info)] = e.Name() == forks || e.Name() == works
		}
		if core.CheckTenant(e.Name()) == nil {
			n.below(path)
		}
	}
}

// named reports whether an entry of a directory is an own one by its name,
// also before it is there. The store names what it is writing, and what a
// restore has kept, after the data file.
func (n now) named(dir inode, name string) bool {
	if n.own == nil || dir != n.home {
		return false
	}
	base := filepath.Base(n.own.data)
	for _, list := range [][]string{n.own.files, n.own.dirs} {
		for _, path := range list {
			if filepath.Dir(path) == filepath.Dir(n.own.data) && filepath.Base(path) == name {
				return true
			}
		}
	}
	return strings.HasPrefix(name, base+".before-restore-") || strings.HasPrefix(name, "."+base+".new-")
}

// refused is the error of an own file; IsOwn knows it.
func refused(path string) error {
	return core.Errorf(core.Denied, "path: %s is one of the engine's own files", path).With("field", "path").With("own", true)
}

// IsOwn reports whether an error says that a file is the engine's own.
func IsOwn(err error) bool {
	var e *core.Error
	return errors.As(err, &e) && e.Code == core.Denied && e.Details["own"] == true
}

// Check refuses a path that leads to one of the engine's own files, whether it
// is there or is to be made. Links are followed: it is for paths that a person
// names with rights of their own.
func (o *Own) Check(path string) error { return o.check(path, false) }

// CheckWork is Check for what agents work on, which may lie in a fork's place.
func (o *Own) CheckWork(path string) error { return o.check(path, true) }

func (o *Own) check(path string, work bool) error {
	if o == nil {
		return nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return core.Errorf(core.Internal, "find %s: %v", path, err)
	}
	n := o.now()
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil {
		full = filepath.Join(dir, filepath.Base(full))
	}
	if info, err := os.Lstat(full); err == nil && (n.files[inodeOf(info)] || n.dirs[inodeOf(info)]) {
		return refused(path)
	}
	for at := full; at != filepath.Dir(at); {
		name := filepath.Base(at)
		at = filepath.Dir(at)
		info, err := os.Stat(at)
		if err != nil {
			continue
		}
		if work && n.forks[inodeOf(info)] {
			return nil
		}
		if n.dirs[inodeOf(info)] || n.named(inodeOf(info), name) {
			return refused(path)
		}
	}
	return nil
}

// Among tells of any number of files whether they are the engine's own, by
// device and inode.
func (o *Own) Among() func(dev, ino uint64) bool {
	n := o.now()
	return func(dev, ino uint64) bool { return n.files[inode{dev, ino}] || n.dirs[inode{dev, ino}] }
}

// File is Open for regular files alone: a pipe is not waited for.
func (o *Own) File(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, core.Errorf(core.InvalidInput, "path: %s is no regular file", path).With("field", "path")
	}
	f, err := o.open(path, syscall.O_NONBLOCK|syscall.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // another took its place
		err = core.Errorf(core.InvalidInput, "path: %s is no regular file", path).With("field", "path")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Open opens a file for a person who names it with rights of their own: any
// that can be read but the engine's own. What was opened is what is checked.
func (o *Own) Open(path string) (*os.File, error) { return o.open(path, 0) }

func (o *Own) open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil || o == nil {
		return f, err
	}
	info, err := f.Stat()
	if err == nil && o.now().files[inodeOf(info)] {
		err = refused(path)
	}
	if at, bad := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))); err == nil && bad == nil && filepath.IsAbs(at) {
		if o.Check(at) != nil {
			err = refused(path)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
