package jsonl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// FuzzRead has hostile lines read: they end in an error, or in events that are
// what they say and can be written again.
func FuzzRead(f *testing.F) {
	e := expect.Of(dag.Parse([]byte(`{"kind":"resource_liveness_probe","ts":"2026-01-02T03:04:05Z","resource_ref":"r","status":"alive"}`)))(f)
	edges := []dag.Edge{{Type: dag.EventConsumes, From: dag.NodeRef{Type: dag.TypeEvent, ID: e.EventID}, To: dag.NodeRef{Type: dag.TypeResource, ID: "r"}}}
	path := filepath.Join(f.TempDir(), "out")
	expect.No(f, (jsonl.Format{}).Export(f.Context(), path, func(yield func(dag.Record, error) bool) {
		yield(dag.Record{Pos: 1, Seq: 1, Event: e, Edges: edges}, nil)
	}))
	sound := expect.Of(os.ReadFile(path))(f)
	f.Add(sound)
	f.Add([]byte("{\"end\":{}}\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = jsonl.Read(bytes.NewReader(data), func(rec dag.Record) error {
			line := expect.Of(jsonl.Encode(rec))(t)
			again, _, err := jsonl.Decode(line)
			expect.Must(t, err == nil && again.Event.EventID == rec.Event.EventID && len(again.Edges) == len(rec.Edges), "%s: %v", line, err)
			return nil
		})
	})
}
