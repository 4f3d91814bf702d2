package safeopen_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/expect"
)

// place is a directory with an engine's files and a project beside them.
type place struct {
	t    *testing.T
	dir  string
	data string
	own  *safeopen.Own
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	p := place{t, dir, filepath.Join(dir, "swarm.db"), nil}
	p.write("swarm.db", "data")
	p.write("swarm.db.key", "KEY")
	p.write("swarm.db.run/spill/t_a/out", "another tenant's")
	p.write("swarm.db.run/trees/t_a/f-1/work/main.go", "a fork's")
	p.write("socket/engine.lock", "")
	p.write("work/a.txt", "text")
	p.write("work/sub/b.txt", "more")
	own := expect.Of(safeopen.OwnFiles(p.data, filepath.Join(dir, "socket")))(p.t)
	p.own = own
	return p
}

func (p place) no(err error) {
	p.t.Helper()
	expect.No(p.t, err)
}

func (p place) at(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(name, text string) {
	p.t.Helper()
	p.no(os.MkdirAll(filepath.Dir(p.at(name)), 0o755))
	p.no(os.WriteFile(p.at(name), []byte(text), 0o644))
}

func (p place) root(dir string) *safeopen.Root {
	p.t.Helper()
	r := expect.Of(p.own.Root(p.at(dir)))(p.t)
	p.t.Cleanup(func() { p.no(r.Close()) })
	return r
}

func TestAFileBelowTheRootIsRead(t *testing.T) {
	p := newPlace(t)
	r := p.root("work")
	for name, want := range map[string]string{"a.txt": "text", "sub/b.txt": "more", "./sub/../a.txt": "text", "sub//b.txt": "more"} {
		got, err := r.Read(name, 100)
		expect.True(t, string(got) == want && err == nil, "%s: %q, %v", name, got, err)
	}
	expect.Err(t, expect.Fault(r.Read("a.txt", 3)), safeopen.ErrTooLarge, "beyond its bound")
	expect.Err(t, expect.Fault(r.Read("none", 3)), fs.ErrNotExist, "missing")
}

func TestNothingLeadsOutOfTheRootOrToWhatIsNoFile(t *testing.T) {
	p := newPlace(t)
	p.no(os.Symlink(p.at("swarm.db.key"), p.at("work/link")))
	p.no(os.Symlink("a.txt", p.at("work/near")))
	p.no(os.Symlink(p.dir, p.at("work/door")))
	p.no(os.Symlink("/proc/self", p.at("work/proc")))
	p.no(syscall.Mkfifo(p.at("work/pipe"), 0o600))
	r := p.root("work")
	for _, name := range []string{
		"", ".", "/", "..", "../swarm.db.key", "sub/../../swarm.db.key", p.at("work/a.txt"), "a\x00b",
		"link", "near", "door/swarm.db.key", "proc/environ", "pipe", "sub", "a.txt/b",
	} {
		if f, err := r.Open(name); err == nil {
			data, _ := io.ReadAll(f)
			t.Errorf("%q was opened: %q", name, data)
		}
		at, err := r.Place(name)
		if err != nil {
			continue
		}
		expect.Fails(t, expect.Fault(at.Put([]byte("x"), nil)), name)
		expect.Fails(t, expect.Fault(at.Append([]byte("x"))), name)
		p.no(at.Close())
	}
	_, err := r.Open("link")
	expect.True(t, core.AsError(err).Code == core.InvalidInput && strings.Contains(err.Error(), "symbolic link"), "a link: %v", err)
}

func TestTheEnginesOwnFilesAreRefusedUnderEveryName(t *testing.T) {
	p := newPlace(t)
	p.no(os.Link(p.at("swarm.db.key"), p.at("work/hard")))
	p.no(os.Link(p.data, p.at("work/hard.db")))
	r := p.root(".")
	for _, name := range []string{
		"swarm.db", "swarm.db.key", "swarm.db.secrets.key", "swarm.db.run/spill/t_a/out", "swarm.db.run/trees/t_a/f-1/work/main.go", "swarm.db.run/agents/new",
		"swarm.db.before-restore-20260102T030405Z", ".swarm.db.new-1", "socket/engine.lock", "work/hard", "work/hard.db", "swarm.db.run/spill",
	} {
		_, err := r.Read(name, 100)
		expect.True(t, safeopen.IsOwn(err) || errors.Is(err, fs.ErrNotExist), "%s: %v", name, err)
		err = p.own.Check(p.at(name))
		expect.True(t, safeopen.IsOwn(err), "check %s: %v", name, err)
		at, err := r.Place(name)
		if err != nil {
			continue
		}
		expect.Fails(t, at.Create([]byte("x")), name)
		expect.Fails(t, expect.Fault(at.Put([]byte("x"), nil)), name)
		p.no(at.Close())
	}
	for _, dir := range []string{"swarm.db.run/spill", "swarm.db.run/spill/t_a", "swarm.db.run/trees", "socket"} {
		_, err := p.own.Root(p.at(dir))
		expect.True(t, safeopen.IsOwn(err), "root %s: %v", dir, err)
	}
	expect.Is(t, string(expect.Of(p.root("swarm.db.run/trees/t_a/f-1/work").Read("main.go", 100))(t)), "a fork's", "in a fork")
	for _, name := range []string{"swarm.db.bak", "swarm.dbx", "work/swarm.db.key", "work/a.txt", "."} {
		expect.No(t, p.own.Check(p.at(name)), name)
	}
}

func TestWhatBelongsToTenantsKeptElsewhereIsTheEnginesOwn(t *testing.T) {
	p := newPlace(t)
	own := expect.Of(safeopen.OwnFiles(p.data))(p.t)
	p.own = own
	p.write("swarm.db.run/t_acme/homes/ada/home/.netrc", "a secret")
	p.write("swarm.db.run/t_acme/trees/t_acme/ada/work/main.go", "a tree's")
	r := p.root(".")
	for _, name := range []string{"swarm.db.run/t_acme/homes/ada/home/.netrc", "swarm.db.run/t_acme/trees/t_acme/ada/work/main.go", "swarm.db.run/t_other/agents/new", "swarm.db.run/spill/t_a/out"} {
		if _, err := r.Read(name, 100); !safeopen.IsOwn(err) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		err := own.Check(p.at(name))
		expect.True(t, safeopen.IsOwn(err), "check %s: %v", name, err)
	}
	for _, dir := range []string{"swarm.db.run/t_acme/homes/ada", "swarm.db.run/t_acme/trees"} {
		_, err := own.Root(p.at(dir))
		expect.True(t, safeopen.IsOwn(err), "root %s: %v", dir, err)
	}
	work := "swarm.db.run/t_acme/trees/t_acme/ada/work"
	expect.Is(t, string(expect.Of(p.root(work).Read("main.go", 100))(t)), "a tree's", "in a tree")
	expect.No(t, own.CheckWork(p.at(work)))
	for _, name := range []string{"swarm.db.t_acme.txt", "swarm.db.acme.homes/x", "work/swarm.db.run/t_acme/homes"} {
		expect.No(t, own.Check(p.at(name)), name)
	}
}

func TestAPersonNamesAnyFileButTheEngines(t *testing.T) {
	p := newPlace(t)
	p.no(os.Symlink(p.at("work/a.txt"), p.at("near")))
	p.no(os.Symlink(p.at("swarm.db.key"), p.at("work/link")))
	p.no(os.Symlink(p.at("swarm.db.run/spill"), p.at("work/door")))
	p.no(os.Link(p.at("swarm.db.key"), p.at("work/hard")))
	f, err := p.own.Open(p.at("near"))
	p.no(err)
	p.no(f.Close())
	for _, name := range []string{"work/link", "work/hard", "work/door/t_a/out", "swarm.db"} {
		_, err := p.own.Open(p.at(name))
		expect.True(t, safeopen.IsOwn(err), "%s: %v", name, err)
		err = p.own.Check(p.at(name))
		expect.True(t, safeopen.IsOwn(err), "check %s: %v", name, err)
	}
	err = p.own.Check(p.at("work/door/new"))
	expect.True(t, safeopen.IsOwn(err), "a new file behind a link: %v", err)
	var none *safeopen.Own
	expect.No(t, none.Check(p.data))
}

func TestFilesAreMadeReplacedAndAppendedTo(t *testing.T) {
	p := newPlace(t)
	r := p.root("work")
	at := func(name string) *safeopen.Place {
		t.Helper()
		at := expect.Of(r.Place(name))(p.t)
		t.Cleanup(func() { p.no(at.Close()) })
		return at
	}
	p.no(at("new").Create([]byte("1")))
	expect.Err(t, at("new").Create([]byte("2")), fs.ErrExist, "made twice")
	p.no(os.Chmod(p.at("work/new"), 0o751))
	p.no(os.Link(p.at("work/new"), p.at("outside")))
	created, err := at("new").Put([]byte("3"), nil)
	expect.True(t, !created && err == nil, "%v %v", created, err)
	created, err = at("new").Append([]byte("4"))
	expect.True(t, !created && err == nil, "%v %v", created, err)
	created, err = at("sub/c").Append([]byte("5"))
	expect.True(t, created && err == nil, "%v %v", created, err)
	for name, want := range map[string]string{"work/new": "34", "work/sub/c": "5", "outside": "1"} {
		got, err := os.ReadFile(p.at(name))
		expect.True(t, string(got) == want && err == nil, "%s: %q %v", name, got, err)
	}
	expect.Is(t, expect.Of(os.Stat(p.at("work/new")))(t).Mode(), 0o751, "mode")
	left, _ := filepath.Glob(p.at("work/.swarmdeck-*"))
	expect.True(t, len(left) == 0, "left %v", left)
}

// A file that is being written can't be left behind by a crash where it has no name yet.
func TestAFileHasNoNameUntilItIsWhole(t *testing.T) {
	p := newPlace(t)
	fd, err := unix.Open(p.at("work"), unix.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		t.Logf("no files without names here, so a crash can leave one: %v", err)
		return
	}
	p.no(unix.Close(fd))
	at := expect.Of(p.root("work").Place("new"))(p.t)
	defer at.Close()
	before := expect.Of(os.ReadDir(p.at("work")))(p.t)
	_, err = at.Put([]byte("1"), func(*os.File) error {
		now, err := os.ReadDir(p.at("work"))
		expect.Is(t, len(now), len(before), now)
		return err
	})
	p.no(err)
}

// TestASwapIsNeverFollowed exchanges a file, and the directory above it, for
// links to the key for as long as it is read, and reads many times.
func TestASwapIsNeverFollowed(t *testing.T) {
	p := newPlace(t)
	p.no(os.Symlink(p.at("swarm.db.key"), p.at("link")))
	p.write("lure/b.txt", "KEY")
	p.no(os.Symlink(p.at("lure"), p.at("door")))
	r := p.root("work")
	stop := make(chan struct{})
	var all sync.WaitGroup
	swap := func(a, b string) {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					exchange(t, p.at(a), p.at(b))
				}
			}
		})
	}
	swap("work/a.txt", "link")
	swap("work/sub", "door")
	seen := map[string]int{}
	for range 20000 {
		for _, name := range []string{"a.txt", "sub/b.txt"} {
			switch data, err := r.Read(name, 100); {
			case string(data) == "KEY":
				t.Fatalf("%s led to the key", name)
			case err != nil:
				seen["refused"]++
			default:
				seen["read"]++
			}
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%v", seen)
}
