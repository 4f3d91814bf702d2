package command

import (
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestEachServerHasAFileOfItsOwnHere(t *testing.T) {
	home := t.TempDir()
	vars := map[string]string{"XDG_DATA_HOME": home}
	e := &Env{Caller: core.Caller{Door: core.DoorCLI}, Getenv: func(name string) string { return vars[name] }}
	named := "postgres://me:secret@db.example/swarm?sslmode=require"
	expect.No(t, e.point(named))
	path := e.dataPath(named)
	if filepath.Dir(path) != filepath.Join(home, "swarmdeck") || DatabaseIn(path) != named {
		t.Errorf("%s points to %q", path, DatabaseIn(path))
	}
	info, err := os.Stat(path)
	expect.True(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v: it holds a password", info.Mode(), err)
	expect.Is(t, e.dataPath("postgres://you@db.example/swarm"), path, "another user's is")
	for _, other := range []string{"postgres://me@db.example/other", "postgres://me@elsewhere/swarm", "postgres:///swarm?host=/run"} {
		expect.True(t, e.dataPath(other) != path, "%s has the same file", other)
	}
	vars["SWARMDECK_DATA"] = named
	expect.True(t, e.dataPath("") == path && e.dataPath("/file") == "/file", "the flag goes before the environment")
	expect.Fails(t, e.point("postgres://me:secret@db.example:x y/swarm"), "accepted a URL that is none")
	plain := filepath.Join(home, "plain")
	for _, content := range []string{"", "hello\n", named + "\n" + named, "\x00\x01"} {
		expect.No(t, os.WriteFile(plain, []byte(content), 0o600))
		expect.Is(t, DatabaseIn(plain), "", content, "points to")
	}
}
