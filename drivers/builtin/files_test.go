package builtin_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

type written struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
}

type readBack struct {
	Path          string  `json:"path"`
	Bytes         int     `json:"bytes"`
	Content       *string `json:"content"`
	ContentBase64 string  `json:"content_base64"`
}

func (b *bench) write(path, content, mode string) written {
	b.t.Helper()
	var w written
	b.gives("file-write", map[string]string{"path": path, "content": content, "mode": mode}, &w)
	return w
}

func (b *bench) holds(path, want string, mode fs.FileMode) {
	b.t.Helper()
	path = filepath.Join(b.dir, path)
	data := expect.Of(os.ReadFile(path))(b.t)
	info := expect.Of(os.Lstat(path))(b.t)
	expect.True(b.t, string(data) == want && info.Mode() == mode, "%s holds %q with %s, want %q with %s", path, data, info.Mode(), want, mode)
}

// tidy checks that nothing but these files lies in the directory.
func (b *bench) tidy(want ...string) {
	b.t.Helper()
	list := expect.Of(os.ReadDir(b.dir))(b.t)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	expect.Is(b.t, strings.Join(names, " "), strings.Join(want, " "), "the directory has", names, want)
}

func TestFilesAreWrittenInThreeModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	b := newBench(t, nil)
	w := b.write("a.txt", "one", "")
	expect.True(t, w.Path == filepath.Join(b.dir, "a.txt") && w.Bytes == 3 && w.Created, "created %+v", w)
	b.holds("a.txt", "one", 0o640)
	b.fails("file-write", map[string]string{"path": "a.txt", "content": "two"}, "conflict", "file exists")
	b.fails("file-write", map[string]string{"path": "a.txt", "content": "two", "mode": "create"}, "conflict", "a.txt: file exists")
	b.holds("a.txt", "one", 0o640)

	expect.No(t, os.Chmod(filepath.Join(b.dir, "a.txt"), 0o755))
	w = b.write(filepath.Join(b.dir, "x", "..", "a.txt"), "two", "overwrite")
	expect.True(t, !w.Created, "overwrote %+v", w)
	b.holds("a.txt", "two", 0o755)
	w = b.write("a.txt", "\nthree", "append")
	expect.True(t, !w.Created && w.Bytes == 6, "appended %+v", w)
	b.holds("a.txt", "two\nthree", 0o755)
	w = b.write("b.txt", "b", "overwrite")
	expect.True(t, w.Created, "wrote %+v", w)
	w = b.write("c.txt", "", "append")
	expect.True(t, w.Created, "appended %+v", w)
	b.holds("b.txt", "b", 0o640)
	b.holds("c.txt", "", 0o640)
	b.tidy("a.txt", "b.txt", "c.txt")
}

func TestNoModeFollowsASymbolicLink(t *testing.T) {
	b := newBench(t, nil)
	target := filepath.Join(t.TempDir(), "target")
	expect.No(t, os.WriteFile(target, []byte("precious"), 0o600))
	for name, to := range map[string]string{"link": target, "dangling": filepath.Join(b.dir, "nowhere")} {
		expect.No(t, os.Symlink(to, filepath.Join(b.dir, name)))
		b.fails("file-write", map[string]string{"path": name, "content": "x", "mode": "create"}, "conflict", "file exists")
		b.fails("file-write", map[string]string{"path": name, "content": "x", "mode": "overwrite"}, "invalid_input", "symbolic link, which is not followed")
		b.fails("file-write", map[string]string{"path": name, "content": "x", "mode": "append"}, "invalid_input", "symbolic link, which is not followed")
	}
	data, _ := os.ReadFile(target)
	expect.True(t, string(data) == "precious", "the link's target holds %q", data)
	b.tidy("dangling", "link")
}

func TestOnlyRegularFilesAreTouched(t *testing.T) {
	b := newBench(t, nil)
	expect.No(t, syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600))
	expect.No(t, os.Mkdir(filepath.Join(b.dir, "dir"), 0o700))
	for _, mode := range []string{"overwrite", "append"} {
		b.fails("file-write", map[string]string{"path": "pipe", "content": "x", "mode": mode}, "invalid_input", "pipe")
		b.fails("file-write", map[string]string{"path": "dir", "content": "x", "mode": mode}, "invalid_input", "dir")
	}
	b.fails("file-write", map[string]string{"path": "dir", "content": "x"}, "conflict", "file exists")
	b.fails("file-read", map[string]string{"path": "pipe"}, "invalid_input", "no regular file")
	b.fails("file-read", map[string]string{"path": "dir"}, "invalid_input", "is a directory")
	b.fails("file-read", map[string]string{"path": "/dev/zero"}, "invalid_input", "a path within")
	b.tidy("dir", "pipe")
}

func TestBadPathsAndModesAreNamed(t *testing.T) {
	b := newBench(t, nil)
	for _, path := range []string{"", "a\x00b", "dir/", strings.Repeat("x", 5000)} {
		b.fails("file-write", map[string]string{"path": path, "content": "x"}, "invalid_input", "path:")
		b.fails("file-read", map[string]string{"path": path}, "invalid_input", "path:")
	}
	b.fails("file-write", map[string]string{"path": "a", "content": "x", "mode": "truncate"}, "invalid_input", "create, overwrite, append")
	b.fails("file-write", map[string]string{"path": "no/such/dir", "content": "x"}, "not_found", "no such file or directory")
	b.fails("file-write", map[string]string{"path": "no/such/dir", "content": "x", "mode": "append"}, "not_found", "")
	b.fails("file-read", map[string]string{"path": "missing"}, "not_found", "missing: no such file")
	b.fails("file-read", map[string]any{"path": "x", "max_bytes": -1}, "invalid_input", "max_bytes")
	b.fails("file-read", map[string]any{"path": "x", "max_bytes": 1 << 21}, "invalid_input", "max_bytes")
	b.tidy()
}

func TestFilesAreReadWithinTheirBounds(t *testing.T) {
	b := newBench(t, nil)
	put := func(name, content string) {
		expect.No(t, os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600))
	}
	put("text", "grüße\n")
	put("empty", "")
	put("binary", "\xff\xfe")
	put("big", strings.Repeat("x", 300<<10))
	for name, want := range map[string]string{"text": "grüße\n", "empty": ""} {
		var r readBack
		b.gives("file-read", map[string]string{"path": name}, &r)
		expect.True(t, r.Content != nil && *r.Content == want && r.Bytes == len(want) && r.ContentBase64 == "" && r.Path == filepath.Join(b.dir, name),
			"%s: %+v", name, r)
	}
	var r readBack
	b.gives("file-read", map[string]string{"path": "binary"}, &r)
	expect.True(t, r.Content == nil && r.ContentBase64 == "//4=" && r.Bytes == 2, "binary: %+v", r)
	b.fails("file-read", map[string]any{"path": "big"}, "too_large", "longer than max_bytes, 262144")
	b.fails("file-read", map[string]any{"path": "text", "max_bytes": 7}, "too_large", "longer than max_bytes, 7")
	b.gives("file-read", map[string]any{"path": "big", "max_bytes": 1 << 20}, &r)
	expect.Is(t, r.Bytes, 300<<10, "big")
}
