package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/safeopen"
	"swarmdeck/expect"
)

func TestTheEnginesOwnFilesAreNotKept(t *testing.T) {
	base := t.TempDir()
	data := filepath.Join(base, "swarm.db")
	fork := data + ".run/trees/t_test/ada-2/work"
	for name, text := range map[string]string{data: "data", data + ".key": "KEY", data + ".run/spill/out": "another's", fork + "/main.go": "a fork's", base + "/work/a": "text"} {
		expect.No(t, os.MkdirAll(filepath.Dir(name), 0o700))
		write(t, name, text)
	}
	expect.No(t, os.Link(data+".key", filepath.Join(base, "work", "hard")))
	d := newDriver(t, Options{Own: data, Dir: filepath.Join(base, "kept")})
	for _, target := range []string{data, data + ".key", data + ".run/spill", data + ".run/spill/out", base + "/work/hard"} {
		if _, err := d.Look(t.Context(), target); !safeopen.IsOwn(err) {
			t.Errorf("%s: %v", target, err)
		}
	}
	for root, want := range map[string]string{base + "/work": "a", fork: "main.go"} {
		r := expect.Of(d.Look(t.Context(), root))(t)
		got := expect.Of(d.Snapshot(t.Context(), tenant, "s-"+want[:1], r, nil))(t)
		s := expect.Of(d.store(tenant))(t)
		tree, err := os.ReadFile(filepath.Join(s.dir, "tree", strings.TrimPrefix(got.Ref.ID, "sha256:")))
		if err != nil || !strings.Contains(string(tree), want) || strings.Contains(string(tree), "hard") {
			t.Errorf("%s: %v\n%s", root, err, tree)
		}
	}
}
