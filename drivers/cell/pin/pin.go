// Package pin holds a command to the files that were judged: it finds and
// reads the files of the work directory that a command line names, keeps what
// they held for whoever is asked, and makes verified copies of what is to run.
//
// It promises nothing for what a script reads by itself, and nothing for files
// that the command only works on, beyond a comparison right before it starts.
package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"swarmdeck/drivers/cell/pin/named"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/safeopen"
)

// Bounds of what one command is bound to, in bytes; named.MaxFiles bounds
// their number.
const (
	maxFile = 16 << 20
	maxAll  = 64 << 20
)

// Keeper looks at files and keeps copies of them below one directory.
type Keeper struct {
	dir, runs string
	own       *safeopen.Own

	mu   sync.Mutex
	kept map[string]*shelf // by tenant
}

// New returns a keeper with a directory for what was approved, which engines may
// share, and one of its own for what runs. It makes them when it first needs them.
// Files of the engine's own are neither read nor bound.
func New(dir, runs string, own *safeopen.Own) (*Keeper, error) {
	for _, d := range []*string{&dir, &runs} {
		abs, err := filepath.Abs(*d)
		if err != nil {
			return nil, fmt.Errorf("find a place for copies: %w", err)
		}
		*d = abs
	}
	return &Keeper{dir: dir, runs: runs, own: own, kept: map[string]*shelf{}}, nil
}

// Look finds what a command line names, as it is now. A nil keeper binds
// nothing.
func (k *Keeper) Look(tenant string, line named.Line) []judge.File {
	if k == nil {
		return nil
	}
	root, err := os.OpenRoot(line.Dir)
	if err != nil {
		return nil // it names nothing there; that it can't start is found out then
	}
	defer root.Close()
	var out []judge.File
	all := int64(0)
	for _, n := range named.Find(root.FS(), line) {
		f := judge.File{Path: n.Path, Runs: n.Runs, Unbound: n.Unbound}
		if f.Unbound == "" {
			all += k.read(root, tenant, &f, maxAll-all)
		}
		if f.Unbound != "" {
			f.Runs = false
		}
		out = append(out, f)
	}
	return out
}

// read fills in what a file holds, of at most so many bytes, and returns how
// many there are.
func (k *Keeper) read(root *os.Root, tenant string, f *judge.File, room int64) int64 {
	if k.own.Check(filepath.Join(root.Name(), filepath.FromSlash(f.Path))) != nil {
		f.Unbound = "the engine's own"
		return 0
	}
	data, info, _, err := readFile(root, f.Path, min(room, maxFile))
	switch {
	case errors.Is(err, errLarge) && room < maxFile:
		f.Unbound = "more than " + strconv.Itoa(maxAll>>20) + " MiB with the files before it"
	case err != nil:
		f.Unbound = reason(err)
	default:
		f.SHA256, f.Size, f.Mode = sum(data), int64(len(data)), mode(info)
		k.keep(tenant, f.SHA256, data)
	}
	return int64(len(data))
}

var (
	errLarge   = errors.New("larger than " + strconv.Itoa(maxFile>>20) + " MiB")
	errRegular = errors.New("not a regular file")
)

func reason(err error) string {
	if errors.Is(err, errLarge) || errors.Is(err, errRegular) {
		return err.Error()
	}
	return "not readable"
}

// readFile reads a whole regular file below a root, and says where it truly
// lies. No link leads out.
func readFile(root *os.Root, rel string, most int64) (data []byte, info fs.FileInfo, place string, err error) {
	f, err := root.OpenFile(filepath.FromSlash(rel), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, "", err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, "", errRegular
	}
	if info.Size() > most {
		return nil, nil, "", errLarge
	}
	if data, err = io.ReadAll(io.LimitReader(f, most+1)); err != nil {
		return nil, nil, "", err
	}
	if int64(len(data)) > most {
		return nil, nil, "", errLarge
	}
	place, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return data, info, place, err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func mode(info fs.FileInfo) string { return fmt.Sprintf("%04o", info.Mode().Perm()) }
