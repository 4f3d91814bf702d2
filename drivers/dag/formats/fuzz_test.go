package formats_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/drivers/dag/formats"
	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/dag"
)

// exported is a small record in a format.
func exported(t testing.TB, format string) []byte {
	t.Helper()
	r := newRig(t)
	by := r.tenant()
	r.fill(by, 5, 12)
	dest := filepath.Join(t.TempDir(), "out")
	_, err := r.Export(t.Context(), by.Tenant, format, dest)
	r.no(err)
	data, err := os.ReadFile(dest)
	r.no(err)
	return data
}

// reads has a format read hostile bytes: it must end, with an error or with
// events that are what they say.
func reads(t *testing.T, format string, data []byte) {
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	_, _ = formats.All()[format].Import(ctx, path, func(rec dag.Record) error {
		if again, err := dag.Parse(rec.Event.JSON()); err != nil || again.EventID != rec.Event.EventID {
			t.Fatalf("%s: %v", rec.Event.JSON(), err)
		}
		return nil
	})
	if ctx.Err() != nil {
		t.Fatal("it does not end")
	}
}

func FuzzJSONL(f *testing.F) {
	f.Add(exported(f, "jsonl"))
	f.Add([]byte("{\"end\":{}}\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = jsonl.Read(t.Context(), bytes.NewReader(data), func(rec dag.Record) error {
			line, err := jsonl.Encode(rec)
			if err != nil {
				t.Fatal(err)
			}
			if again, _, err := jsonl.Decode(line); err != nil || again.Event.EventID != rec.Event.EventID || len(again.Edges) != len(rec.Edges) {
				t.Fatalf("%s: %v", line, err)
			}
			return nil
		})
	})
}

func FuzzCAR(f *testing.F) {
	f.Add(exported(f, "car"))
	f.Add([]byte("\x3d\xa2\x65roots\x81\xd8\x2a"))
	f.Fuzz(func(t *testing.T, data []byte) { reads(t, "car", data) })
}

func FuzzSQLite(f *testing.F) {
	f.Add(exported(f, "sqlite"))
	f.Add([]byte("SQLite format 3\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { reads(t, "sqlite", data) })
}

// FuzzGit has segments and manifests of any content in a sound repository.
func FuzzGit(f *testing.F) {
	f.Add([]byte(`{"pos":1,"seq":1,"event_id":"x","event":{},"edges":[]}`+"\n"), []byte(`{"format":"swarmdeck.dag","version":1,"events":1,"chain":""}`))
	f.Add([]byte("\n\n"), []byte("{}"))
	f.Fuzz(func(t *testing.T, segment, manifest []byte) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{"segments/run-r/1.jsonl": segment, "manifest.json": manifest} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-ec", "git init -q -b record; git add -A; git -c user.name=x -c user.email=x commit -qm x")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, _ = formats.All()["git"].Import(t.Context(), dir, func(dag.Record) error { return nil })
	})
}
