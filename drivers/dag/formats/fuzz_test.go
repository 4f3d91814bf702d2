package formats_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/drivers/dag/formats"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// reads has a format read hostile bytes: it must end, with an error or with
// events that are what they say.
func reads(t *testing.T, format, path string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	_, _ = formats.All(gittest.Git(t).Cells)[format].Import(ctx, path, func(rec dag.Record) error {
		if again, err := dag.Parse(rec.Event.JSON()); err != nil || again.EventID != rec.Event.EventID {
			t.Fatalf("%s: %v", rec.Event.JSON(), err)
		}
		return nil
	})
	expect.No(t, ctx.Err(), "it does not end")
}

// Damage of every sort, by chance but the same each time. (A fuzzer that
// watches all of SQLite's code would try a few files a minute.)
func TestDamagedFilesAreReadToAnEnd(t *testing.T) {
	r := newRig(t)
	by := r.tenant()
	r.fill(by, 5, 12)
	for _, format := range []string{"jsonl", "car", "sqlite"} {
		path := filepath.Join(t.TempDir(), "out")
		expect.Of(r.Export(t.Context(), by.Tenant, format, path))(r.t)
		sound := expect.Of(os.ReadFile(path))(r.t)
		chance := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			data := bytes.Clone(sound)
			for range 1 + chance.IntN(20) {
				at := chance.IntN(len(data))
				if chance.IntN(2) == 0 {
					at = min(at, chance.IntN(200)) // heads matter most
				}
				data[at] = byte(chance.Uint32())
			}
			switch chance.IntN(4) {
			case 0:
				data = data[:chance.IntN(len(data))]
			case 1:
				from := chance.IntN(len(data))
				copy(data[chance.IntN(len(data)):], data[from:min(len(data), from+chance.IntN(5000))])
			}
			r.no(os.WriteFile(path, data, 0o600))
			reads(t, format, path)
		}
	}
}

// FuzzGit has segments and manifests of any content in a sound repository.
func FuzzGit(f *testing.F) {
	f.Add([]byte(`{"pos":1,"seq":1,"event_id":"x","event":{},"edges":[]}`+"\n"), []byte(`{"format":"swarmdeck.dag","version":1,"events":1,"chain":""}`))
	f.Add([]byte("\n\n"), []byte("{}"))
	f.Add([]byte(`{"pos":18446744073709551615}`), []byte(`{"format":"swarmdeck.dag"}`))
	f.Fuzz(func(t *testing.T, segment, manifest []byte) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{"segments/run-r/1.jsonl": segment, "manifest.json": manifest} {
			path := filepath.Join(dir, name)
			expect.No(t, os.MkdirAll(filepath.Dir(path), 0o700))
			expect.No(t, os.WriteFile(path, data, 0o600))
		}
		cmd := exec.Command("sh", "-ec", "git init -q -b record; git add -A; git -c user.name=x -c user.email=x commit -qm x")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "%v: %s", err, out)
		reads(t, "git", dir)
	})
}
