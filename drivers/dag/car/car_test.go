package car

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// sound is a small archive, with the events that are in it.
func sound(t testing.TB) (data []byte, events []dag.Event) {
	t.Helper()
	for _, text := range []string{
		`{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a"}`,
		`{"kind":"tool_result","ts":"2026-01-02T03:04:06Z","run_id":"r","agent_id":"a","call_id":"c","status":"ok","result":{"/":"x","text":"🙂"}}`,
	} {
		e, err := dag.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	path := filepath.Join(t.TempDir(), "out")
	err := Format{}.Export(t.Context(), path, func(yield func(dag.Record, error) bool) {
		for i, e := range events {
			if !yield(dag.Record{Pos: uint64(i + 1), Seq: uint64(i + 1), Event: e}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return data, events
}

// The digest in an event's CID is its id: who has the one has the other.
func TestAnEventsBlockIsNamedByItsID(t *testing.T) {
	data, events := sound(t)
	a, err := open(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for i, codec := range []int{codecDAGJSON, codecRaw} {
		e := events[i]
		c := cidOf(codec, e.Canonical())
		if id := hex.EncodeToString([]byte(c[len(c)-sha256.Size:])); id != e.EventID || codecFor(e.Canonical()) != codec {
			t.Errorf("event %s has the CID %s with digest %s", e.EventID, c, id)
		}
		if block, err := a.block(c); err != nil || !bytes.Equal(block, e.Canonical()) {
			t.Errorf("%s: %s %v", c, block, err)
		}
	}
	// A CID that other tools give the same block (sha2-256, dag-json, base32).
	if got := cidOf(codecDAGJSON, []byte(`{}`)).String(); got != "baguqeeraiqjw7i2vwntyuekgvulpp2det2kpwt6cd7tx5ayqybqpmhfk76fa" {
		t.Errorf("%s", got)
	}
}

func TestNamesThatSortOtherwiseAreSeen(t *testing.T) {
	for text, codec := range map[string]int{
		`{"a":"🙂","b":["/"]}`:    codecDAGJSON,
		`{"a":"x\"/\":y"}`:       codecDAGJSON,
		`{"/":1}`:                codecRaw,
		`{"a":{"🙂":1}}`:          codecRaw,
		`{"a":[{"\ue000":"x"}]}`: codecDAGJSON,
	} {
		canon, err := core.Canonical([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if text == `{"a":[{"\ue000":"x"}]}` {
			codec = codecRaw // once the escape is written out
		}
		if got := codecFor(canon); got != codec {
			t.Errorf("%s: %x", text, got)
		}
	}
}

// FuzzOpen has hostile archives read: it ends, in an error or in events that
// are what they say.
func FuzzOpen(f *testing.F) {
	data, _ := sound(f)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add([]byte("\x3d\xa2\x65roots\x81\xd8\x2a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := open(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		_, _ = a.read(t.Context(), func(rec dag.Record) error {
			if again, err := dag.Parse(rec.Event.JSON()); err != nil || again.EventID != rec.Event.EventID {
				t.Fatalf("%s: %v", rec.Event.JSON(), err)
			}
			return nil
		})
	})
}
