package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestAHostileTreeIsKeptWithoutLeavingIt(t *testing.T) {
	base := t.TempDir()
	secret := filepath.Join(base, "secret")
	expect.No(t, os.Mkdir(secret, 0o700))
	write(t, filepath.Join(secret, "key"), "TOP SECRET")
	root := filepath.Join(base, "tree")
	expect.No(t, os.Mkdir(root, 0o755))
	for name, to := range map[string]string{"out": secret, "file": filepath.Join(secret, "key"), "up": "../secret/key", "loop": "loop", "self": "."} {
		expect.No(t, os.Symlink(to, filepath.Join(root, name)))
	}
	expect.No(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	sock := expect.Of(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))(t)
	defer unix.Close(sock)
	expect.No(t, unix.Bind(sock, &unix.SockaddrUnix{Name: filepath.Join(root, "socket")}))
	write(t, filepath.Join(root, "suid"), "x")
	expect.No(t, os.Chmod(filepath.Join(root, "suid"), 0o755|os.ModeSetuid))
	d := newDriver(t, Options{})
	r := expect.Of(d.Look(t.Context(), root))(t)
	got := expect.Of(d.Snapshot(t.Context(), tenant, "s1", r, nil))(t)
	notes := strings.Join(got.Notes, "; ")
	if !strings.Contains(notes, "2 pipes, sockets and devices") || !strings.Contains(notes, "3 links lead out") {
		t.Error(notes)
	}
	nowhere(t, d, "TOP SECRET")
	dest := filepath.Join(base, "copy")
	snap := dag.Snapshot{ID: "s1", ExternalRef: got.Ref}
	expect.Of(d.Restore(t.Context(), tenant, "r1", snap, r, dest))(t)
	if info, err := os.Lstat(filepath.Join(dest, "suid")); err != nil || info.Mode()&os.ModeSetuid != 0 {
		t.Error("setuid was restored", err)
	}
	if to, err := os.Readlink(filepath.Join(dest, "file")); err != nil || to != filepath.Join(secret, "key") {
		t.Error(to, err)
	}
	if data, err := os.ReadFile(filepath.Join(secret, "key")); string(data) != "TOP SECRET" || err != nil {
		t.Error("what a link leads to was changed")
	}
}

// nowhere demands that no content that is kept holds a text.
func nowhere(t *testing.T, d *Driver, text string) {
	t.Helper()
	err := filepath.WalkDir(d.opt.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			t.Errorf("%s holds %q", path, text)
		}
		return err
	})
	expect.No(t, err)
}

func TestADirectoryThatBecomesALinkMeanwhileIsNotFollowed(t *testing.T) {
	base := t.TempDir()
	secret := filepath.Join(base, "secret")
	root := filepath.Join(base, "tree")
	for _, dir := range []string{secret, filepath.Join(root, "sub")} {
		expect.No(t, os.MkdirAll(dir, 0o755))
	}
	write(t, filepath.Join(secret, "a"), "TOP SECRET")
	write(t, filepath.Join(root, "sub", "a"), "harmless")
	swapped := filepath.Join(root, "link")
	expect.No(t, os.Symlink(secret, swapped))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "sub"), unix.AT_FDCWD, swapped, unix.RENAME_EXCHANGE)
			}
		}
	}()
	d := newDriver(t, Options{})
	r := expect.Of(d.Look(t.Context(), root))(t)
	for i := range 100 {
		_, err := d.Snapshot(t.Context(), tenant, "s"+string(rune('a'+i%26))+string(rune('a'+i/26)), r, nil)
		if err != nil && core.AsError(err).Code != core.Internal { // what was a directory is none: to be tried again
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
	nowhere(t, d, "TOP SECRET")

	// A place whose own directory has become a link is not that place any more.
	expect.No(t, os.Rename(root, root+".away"))
	expect.No(t, os.Symlink(secret, root))
	_, err := d.Snapshot(t.Context(), tenant, "s-last", r, nil)
	expect.Fails(t, err, "a link in the resource's place was followed")
	nowhere(t, d, "TOP SECRET")
}

func TestATreeBeyondItsLimitsIsRefused(t *testing.T) {
	root := t.TempDir()
	huge := filepath.Join(root, "huge")
	write(t, huge, "x")
	expect.No(t, os.Truncate(huge, 1<<40))
	began := time.Now()
	refused(t, Options{Limits: Limits{Files: 9, Bytes: 1 << 39, File: 1 << 41, Depth: 9}}, root, "huge")
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("a file of 1 TiB was looked at for %v", took)
	}
	expect.No(t, os.Truncate(huge, 10))
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(root, name), "x")
	}
	refused(t, Options{Limits: Limits{Files: 4, Bytes: 100, Depth: 9}}, root, "4 files")
	refused(t, Options{Limits: Limits{Files: 9, Bytes: 10, Depth: 9}}, root, "10 bytes")
	expect.No(t, os.MkdirAll(filepath.Join(root, strings.Repeat("d/", 101)), 0o755))
	refused(t, Options{}, root, "100 directories deep")
}

// refused demands that a snapshot is refused and leaves nothing.
func refused(t *testing.T, opt Options, root, why string) {
	t.Helper()
	d := newDriver(t, opt)
	r := expect.Of(d.Look(t.Context(), root))(t)
	_, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	if core.AsError(err).Code != core.InvalidInput || !strings.Contains(err.Error(), why) {
		t.Errorf("%v, want %q", err, why)
	}
	for _, dir := range []string{"taken", "tree", "tmp"} {
		if all, _ := os.ReadDir(filepath.Join(d.opt.Dir, tenant, dir)); len(all) > 0 {
			t.Errorf("%s was left", all)
		}
	}
}

func TestAFullDiskIsNotFilled(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), "x")
	d := newDriver(t, Options{Spare: 1 << 62})
	r, _ := d.Look(t.Context(), root)
	if _, err := d.Snapshot(t.Context(), tenant, "s1", r, nil); core.AsError(err).Code != core.Unavailable || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
}

// nobody is a user without rights.
const nobody = 65534

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	if os.Getenv(asNobody) != "" {
		unreadable(t)
		return
	}
	if os.Geteuid() != 0 {
		unreadable(t)
		return
	}
	exe := filepath.Join("/tmp", filepath.Base(t.TempDir())+"-nobody.test")
	data := expect.Of(os.ReadFile("/proc/self/exe"))(t)
	expect.No(t, os.WriteFile(exe, data, 0o755))
	defer os.Remove(exe)
	cmd := exec.Command(exe, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), asNobody+"=1", "TMPDIR=/tmp", "HOME=/")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

const asNobody = "SWARMDECK_TEST_NOBODY"

func unreadable(t *testing.T) {
	root := filepath.Join(t.TempDir(), "tree")
	closed := filepath.Join(root, "closed")
	expect.No(t, os.MkdirAll(closed, 0o700))
	write(t, filepath.Join(closed, "a"), "x")
	d := newDriver(t, Options{})
	r := expect.Of(d.Look(t.Context(), root))(t)
	for _, path := range []string{filepath.Join(closed, "a"), closed} {
		expect.No(t, os.Chmod(path, 0))
		_, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
		rel, _ := filepath.Rel(root, path)
		if core.AsError(err).Code != core.Denied || !strings.Contains(err.Error(), `"`+rel+`"`) {
			t.Errorf("%s: %v", rel, err)
		}
		expect.No(t, os.Chmod(path, 0o700))
	}
	// A directory that can't be written is made again, and replaced.
	expect.No(t, os.Chmod(closed, 0o500))
	res, snap := kept(t, d, "s2", root)
	want := picture(t, root)
	expect.Of(d.Restore(t.Context(), tenant, "r1", snap, res, ""))(t)
	if got := picture(t, root); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	expect.No(t, os.Chmod(closed, 0o700))
}

func TestAStoreThatIsDamagedShortensNoSnapshot(t *testing.T) {
	opt := Options{Dir: t.TempDir()}
	d := newDriver(t, opt)
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), "x")
	r, _ := kept(t, d, "s1", root)
	write(t, filepath.Join(root, "b"), "new")
	s := expect.Of(d.store(tenant))(t)
	expect.No(t, os.RemoveAll(filepath.Join(s.dir, "content")))
	if got, err := d.Snapshot(t.Context(), tenant, "s2", r, nil); err == nil {
		t.Errorf("a snapshot without a file was taken: %+v", got)
	}
}
