package builtin_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"swarmdeck/drivers/builtin"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
)

func TestTheEnginesOwnFilesAreNeitherReadNorWritten(t *testing.T) {
	b := newBench(t, nil)
	at := func(name string) string { return filepath.Join(b.dir, name) }
	must := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	must(os.WriteFile(at("swarm.db"), []byte("data"), 0o600))
	must(os.WriteFile(at("swarm.db.key"), []byte("KEY"), 0o600))
	must(os.MkdirAll(at("swarm.db.run/spill"), 0o700))
	must(os.WriteFile(at("swarm.db.run/spill/out"), []byte("another's"), 0o600))
	must(os.Link(at("swarm.db.key"), at("hard")))
	must(os.Symlink("swarm.db.key", at("link")))
	must(os.Symlink("swarm.db.run/spill", at("door")))
	own, err := safeopen.OwnFiles(at("swarm.db"))
	must(err)
	var told []string
	b.Runner = builtin.New(builtin.Options{Dir: b.dir, Own: own, Refused: func(_ context.Context, call skill.Call, err error) {
		told = append(told, call.AgentID+" "+string(core.AsError(err).Code))
	}})
	for name, code := range map[string]string{
		"swarm.db": "denied", "swarm.db.key": "denied", "hard": "denied", "./x/../swarm.db.key": "denied", "swarm.db.run/spill/out": "denied",
		"link": "invalid_input", "door/out": "invalid_input",
	} {
		b.fails("file-read", map[string]string{"path": name}, code, "path:")
		for _, mode := range []string{"overwrite", "append"} {
			b.fails("file-write", map[string]string{"path": name, "content": "x", "mode": mode}, code, "path:")
		}
	}
	b.fails("file-write", map[string]string{"path": "swarm.db.secrets.key", "content": "x"}, "denied", "own")
	for _, path := range []string{"/etc/passwd", "../x", "x/../../x"} {
		b.fails("file-read", map[string]string{"path": path}, "invalid_input", "a path within "+b.dir)
	}
	expect.True(t, len(told) == 16 && slices.Compact(told)[0] == "agent-1 DENIED", "told %q", told)
	for name, want := range map[string]string{"swarm.db": "data", "swarm.db.key": "KEY", "swarm.db.run/spill/out": "another's"} {
		got, err := os.ReadFile(at(name))
		expect.True(t, string(got) == want && err == nil, "%s holds %q: %v", name, got, err)
	}
}
