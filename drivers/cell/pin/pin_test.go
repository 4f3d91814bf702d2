package pin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell/pin/named"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const tenant = "t_test"

func put(t *testing.T, path, text string, perm os.FileMode) {
	t.Helper()
	expect.No(t, os.MkdirAll(filepath.Dir(path), 0o700))
	_ = os.Remove(path)
	expect.No(t, os.WriteFile(path, []byte(text), perm))
	expect.No(t, os.Chmod(path, perm))
}

// world is a keeper and a work directory without links in its path.
func world(t *testing.T) (*Keeper, string) {
	t.Helper()
	k := expect.Of(New(filepath.Join(t.TempDir(), "approved"), filepath.Join(t.TempDir(), "runs"), nil))(t)
	dir := expect.Of(filepath.EvalSymlinks(t.TempDir()))(t)
	return k, dir
}

func TestWhatIsJudgedIsReadOnceAndKept(t *testing.T) {
	k, dir := world(t)
	put(t, filepath.Join(dir, "job.sh"), "echo hi\n", 0o755)
	put(t, filepath.Join(dir, "data"), "x\x00y", 0o644)
	files := k.Look(tenant, named.Line{Argv: []string{"sh", "job.sh", "data"}, Dir: dir})
	if len(files) != 2 || files[0].Path != "job.sh" || files[0].SHA256 != sum([]byte("echo hi\n")) || files[0].Size != 8 || files[0].Mode != "0755" || !files[0].Runs || files[1].Runs {
		t.Fatalf("%+v", files)
	}
	got, ok := k.Content(tenant, files[0].SHA256)
	expect.True(t, ok && string(got) == "echo hi\n", "%q, %v", got, ok)
	_, ok = k.Content(tenant, files[1].SHA256)
	expect.True(t, !ok, "what is no text is kept")
	_, ok = k.Content("t_other", files[0].SHA256)
	expect.True(t, !ok, "another tenant reads it")
	_, ok = k.Content(tenant, "../"+tenant+"/"+files[0].SHA256)
	expect.True(t, !ok, "a path is a digest")
}

func TestALargeFileIsNotBound(t *testing.T) {
	k, dir := world(t)
	for name, size := range map[string]int64{"huge": maxFile + 1, "a": maxFile, "b": maxFile, "c": maxFile, "d": maxFile, "e": 1} {
		put(t, filepath.Join(dir, name), "", 0o644)
		expect.No(t, os.Truncate(filepath.Join(dir, name), size))
	}
	files := k.Look(tenant, named.Line{Argv: []string{"frob", "huge", "a", "b", "c", "d", "e"}, Dir: dir})
	for i, f := range files {
		expect.Is(t, f.Unbound == "", i > 0 && i < 5, f)
	}
}

func TestTheCopiesAreWhatWasJudged(t *testing.T) {
	k, dir := world(t)
	job := filepath.Join(dir, "sub", "job.sh")
	put(t, job, "echo hi\n", 0o755)
	put(t, filepath.Join(dir, "conf"), "a", 0o644)
	expect.No(t, os.Symlink("sub/job.sh", filepath.Join(dir, "link.sh")))
	line := named.Line{Argv: []string{"./link.sh", "--config", "conf"}, Dir: dir}
	files := k.Look(tenant, line)
	set, err := k.Take(dir, files, nil)
	expect.Must(t, err == nil && len(set.Pins) == 2, "%+v, %v", set, err)
	p := set.Pins[0]
	expect.True(t, p.Path == job && filepath.Base(p.Copy) == "link.sh", "%+v", p)
	for i, perm := range []os.FileMode{0o500, 0o400} {
		info, err := os.Stat(set.Pins[i].Copy)
		expect.True(t, err == nil && info.Mode().Perm() == perm, "%v, %v", info, err)
	}
	info, err := os.Stat(set.dir)
	expect.True(t, err == nil && info.Mode().Perm() == 0o700, "%v, %v", info, err)
	expect.No(t, Verify(set.Pins))
	put(t, job, "echo no\n", 0o755)
	err = Verify(set.Pins)
	expect.True(t, errors.Is(err, judge.ErrChanged) && strings.Contains(err.Error(), "job.sh is not what was judged"), "%v", err)
	expect.Err(t, expect.Fault(k.Take(dir, files, nil)), judge.ErrChanged)
	set.Release()
	set.Release()
	left, _ := filepath.Glob(filepath.Join(k.runs, "*"))
	expect.True(t, len(left) == 0, "left: %q", left)
}

func TestEveryWayToChangeAFileIsSeen(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, job string){
		"content":   func(t *testing.T, job string) { put(t, job, "echo no", 0o755) },
		"mode":      func(t *testing.T, job string) { put(t, job, "echo hi", 0o700) },
		"gone":      func(_ *testing.T, job string) { os.Remove(job) },
		"link":      func(_ *testing.T, job string) { os.Remove(job); os.Symlink("/bin/true", job) },
		"directory": func(_ *testing.T, job string) { os.Remove(job); os.Mkdir(job, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			k, dir := world(t)
			job := filepath.Join(dir, "job.sh")
			put(t, job, "echo hi", 0o755)
			files := k.Look(tenant, named.Line{Argv: []string{"./job.sh"}, Dir: dir})
			change(t, job)
			expect.Err(t, expect.Fault(k.Take(dir, files, nil)), judge.ErrChanged)
			again := k.Look(tenant, named.Line{Argv: []string{"./job.sh"}, Dir: dir})
			expect.True(t, !judge.SameFiles(files, again), "%+v", again)
		})
	}
}

func TestALinkInPlaceOfAPinnedFileIsSeen(t *testing.T) {
	k, dir := world(t)
	job, twin := filepath.Join(dir, "job.sh"), filepath.Join(dir, "twin.sh")
	put(t, job, "echo hi", 0o755)
	put(t, twin, "echo hi", 0o755)
	set := expect.Of(k.Take(dir, k.Look(tenant, named.Line{Argv: []string{"./job.sh"}, Dir: dir}), nil))(t)
	defer set.Release()
	expect.No(t, errors.Join(os.Remove(job), os.Symlink(twin, job)))
	expect.Err(t, Verify(set.Pins), judge.ErrChanged)
}

func TestWhatAFormerEngineLeftIsSwept(t *testing.T) {
	k, dir := world(t)
	put(t, filepath.Join(dir, "job.sh"), "echo hi", 0o755)
	files := k.Look(tenant, named.Line{Argv: []string{"./job.sh"}, Dir: dir})
	set := expect.Of(k.Take(dir, files, nil))(t)
	expect.No(t, k.Sweep())
	expect.Fails(t, expect.Fault(os.Stat(set.Pins[0].Copy)), "a copy is left")
	_, ok := k.Content(tenant, files[0].SHA256)
	expect.True(t, ok, "what was shown is gone")
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	k, _ := world(t)
	data := []byte(strings.Repeat("x", maxKept))
	var last string
	for i := range 400 {
		data[0], data[1] = byte('a'+i%26), byte('a'+i/26)
		last = sum(data)
		k.keep(tenant, last, data)
	}
	entries, err := os.ReadDir(filepath.Join(k.dir, "seen", tenant))
	expect.True(t, err == nil && len(entries) <= maxShelf/maxKept, "%d are kept, %v", len(entries), err)
	_, ok := k.Content(tenant, last)
	expect.True(t, ok, "the newest is gone")
}

func TestNoKeeperBindsNothing(t *testing.T) {
	var k *Keeper
	files := k.Look(tenant, named.Line{Argv: []string{"sh", "x"}, Dir: "/"})
	expect.True(t, files == nil, "%+v", files)
	set, err := k.Take("/", nil, nil)
	expect.True(t, err == nil && set != nil, "%v, %v", set, err)
	_, ok := k.Content(tenant, "x")
	expect.True(t, !ok && k.Sweep() == nil, "it keeps something")
}

func BenchmarkLook(b *testing.B) {
	k := expect.Of(New(filepath.Join(b.TempDir(), "approved"), filepath.Join(b.TempDir(), "runs"), nil))(b)
	dir := b.TempDir()
	expect.No(b, os.WriteFile(filepath.Join(dir, "job.sh"), []byte("echo hi"), 0o600))
	for name, argv := range map[string][]string{"nothing": {"true"}, "words": {"echo", "hello", "a=b"}, "script": {"sh", "job.sh"}, "line": {"sh", "-c", "cd /; sh job.sh && echo done"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				k.Look(tenant, named.Line{Argv: argv, Dir: dir})
			}
		})
	}
}
