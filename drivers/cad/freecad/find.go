package freecad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

// ErrNotFound is wrapped by what Find says when there is no FreeCAD.
var ErrNotFound = errors.New("FreeCAD was not found")

// Installation is a Python that can import FreeCAD.
type Installation struct {
	Python string   // the interpreter
	Paths  []string // where FreeCAD's modules may lie, besides its own
	// Versions of FreeCAD and of OpenCASCADE, such as 0.20.2 and 7.6.3.
	FreeCAD, OpenCASCADE string
}

// modulePaths are where distributions put FreeCAD's modules.
var modulePaths = [...]string{
	"/usr/lib/freecad-python3/lib", "/usr/lib/freecad/lib", "/usr/lib64/freecad/lib", "/usr/local/lib/freecad/lib",
}

// systemPython is tried first: FreeCAD's modules fit the Python that they were
// built for, which one from a version manager seldom is.
const systemPython = "/usr/bin/python3"

// probePatience is how long one interpreter may take to import all.
const probePatience = 20 * time.Second

// probe imports what the worker needs. FreeCAD writes to descriptor 1 as it
// likes, so the answer goes out by a copy of it; and its own end does not matter.
const probe = `
import json, os, sys
out = os.dup(1)
os.dup2(2, 1)
sys.path.extend(sys.argv[1:])
import FreeCAD, Part, Import, MeshPart
os.write(out, json.dumps({"freecad": ".".join(FreeCAD.Version()[:3]), "opencascade": Part.OCC_VERSION}).encode())
os._exit(0)
`

// Find looks for a FreeCAD: the system's Python with the places where
// distributions put FreeCAD's modules, then the python3 on the PATH. Its error
// wraps ErrNotFound and says for each interpreter what is missing. Cells starts
// the interpreters; nil is for a process that is in a cell itself.
func Find(ctx context.Context, cells *cell.Supervisor) (Installation, error) {
	var pythons []string
	if _, err := os.Stat(systemPython); err == nil {
		pythons = append(pythons, systemPython)
	}
	if path, err := cell.Look("python3"); err == nil && !slices.Contains(pythons, path) {
		pythons = append(pythons, path)
	}
	if len(pythons) == 0 {
		return Installation{}, fmt.Errorf("%w: there is no python3; on Debian or Ubuntu install freecad-python3", ErrNotFound)
	}
	var paths []string
	for _, dir := range modulePaths {
		if _, err := os.Stat(dir); err == nil {
			paths = append(paths, dir)
		}
	}
	var reasons []string
	for _, python := range pythons {
		found := Installation{Python: python, Paths: paths}
		err := found.probe(ctx, cells)
		if err == nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return Installation{}, fmt.Errorf("look for FreeCAD: %w", context.Cause(ctx))
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", python, err))
	}
	return Installation{}, fmt.Errorf("%w: %s; on Debian or Ubuntu install freecad-python3", ErrNotFound, strings.Join(reasons, "; "))
}

func (i *Installation) probe(ctx context.Context, cells *cell.Supervisor) error {
	dir, err := newDir("")
	if err != nil {
		return err
	}
	defer dir.remove()
	ctx, stop := context.WithTimeoutCause(ctx, probePatience, fmt.Errorf("no answer within %v", probePatience))
	defer stop()
	answer := pipe.Kept{Most: maxTail}
	said := pipe.Kept{Most: maxTail, End: true}
	argv := append([]string{i.Python, "-I", "-B", "-c", probe}, i.Paths...)
	if cells != nil {
		err = inCell(ctx, cells, argv, dir.path, &answer, &said)
	} else {
		err = beside(ctx, argv, dir.path, &answer, &said)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if last := last(&said); last != "" {
			return errors.New(last)
		}
		return err
	}
	var versions struct {
		FreeCAD     string `json:"freecad"`
		OpenCASCADE string `json:"opencascade"`
	}
	if err := core.DecodeStored(answer.Bytes(), &versions); err != nil || versions.FreeCAD == "" || versions.OpenCASCADE == "" {
		return fmt.Errorf("it answers %q to what FreeCAD's version is", core.OneLine(string(answer.Bytes()), 100))
	}
	i.FreeCAD, i.OpenCASCADE = versions.FreeCAD, versions.OpenCASCADE
	return nil
}

// inCell runs an interpreter where it can write its directory alone.
func inCell(ctx context.Context, cells *cell.Supervisor, argv []string, dir string, out, errs io.Writer) error {
	env := map[string]string{}
	for _, v := range environ(dir) {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	exit, err := cells.Run(ctx, cell.Spec{
		Run: "freecad", Argv: argv, Dir: dir, Env: env, Wall: cell.Wall{Profile: cell.Reader, Named: true, Write: []string{dir}},
	}, nil, out, errs)
	return failed(exit, err)
}

// beside runs an interpreter in the cell that this process is in.
func beside(ctx context.Context, argv []string, dir string, out, errs io.Writer) error {
	return failed(cell.RunChild(ctx, cell.ChildSpec{Argv: argv, Dir: dir, Env: environ(dir), Stdout: out, Stderr: errs}))
}

func failed(exit cell.Exit, err error) error {
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("it %s", exit.Describe())
	}
	return err
}

// environ is all that FreeCAD gets to know of our environment: nothing. What it
// wants to keep goes to a directory that is removed.
func environ(dir string) []string {
	return []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + dir, "TMPDIR=" + dir,
		"FREECAD_USER_HOME=" + filepath.Join(dir, "home"), "FREECAD_USER_TEMP=" + dir,
	}
}

const dirPrefix = "swarmdeck-freecad-"

// dir is a private directory of one worker. Whoever uses it holds a lock on it,
// so that what a crash left behind is known as such, and swept away by the next
// one that is made.
type dir struct {
	path string
	lock *os.File
}

// newDir makes a directory in another, "" for the system's own for such.
func newDir(parent string) (*dir, error) {
	parent = cmp.Or(parent, os.TempDir())
	left, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("look for directories left behind: %w", err)
	}
	for _, path := range left {
		if old := take(path); old != nil {
			old.remove()
		}
	}
	path, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for FreeCAD: %w", err)
	}
	d := take(path)
	if d == nil {
		return nil, fmt.Errorf("lock %s: another process took it", path)
	}
	return d, nil
}

// take locks a directory; nil when another holds it, or it is not ours.
func take(path string) *dir {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil
	}
	return &dir{path: path, lock: f}
}

// remove is best effort: what stays is swept later.
func (d *dir) remove() {
	_ = os.RemoveAll(d.path)
	d.lock.Close()
}
