package car

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// sound is a small archive, with the events that are in it.
func sound(t testing.TB) (data []byte, events []dag.Event) {
	t.Helper()
	path, events := export(t,
		`{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a"}`,
		`{"kind":"tool_result","ts":"2026-01-02T03:04:06Z","run_id":"r","agent_id":"a","call_id":"c","status":"ok","result":{"/":"x","text":"🙂"}}`,
	)
	data = expect.Of(os.ReadFile(path))(t)
	return data, events
}

// export writes events to a file.
func export(t testing.TB, texts ...string) (path string, events []dag.Event) {
	t.Helper()
	for _, text := range texts {
		e := expect.Of(dag.Parse([]byte(text)))(t)
		events = append(events, e)
	}
	path = filepath.Join(t.TempDir(), "out")
	err := Format{}.Export(t.Context(), path, func(yield func(dag.Record, error) bool) {
		for i, e := range events {
			if !yield(dag.Record{Pos: uint64(i + 1), Seq: uint64(i + 1), Event: e}, nil) {
				return
			}
		}
	})
	expect.No(t, err)
	return path, events
}

// IPLD's own libraries find every block as its CID says, and all that is linked.
func TestOthersReadWhatIsWritten(t *testing.T) {
	reader := os.Getenv("SWARMDECK_IPLD")
	if reader == "" {
		t.Skip("SWARMDECK_IPLD names no reader of others: make ipld installs one")
	}
	var texts []string
	for i := range perPage + 2 { // two pages
		texts = append(texts, fmt.Sprintf(`{"kind":"tool_result","ts":"2026-01-02T03:04:06Z","run_id":"r%d","agent_id":"a","call_id":"c","status":"ok","result":%s}`, i%3,
			[]string{`{"n":1,"long name":2,"b":[1.5,-0.25,1e-7,null]}`, `{"/":"x","text":"🙂"}`, `{"é":"é","\ue000":"\u2028","🙂":{}}`}[i%3]))
	}
	path, events := export(t, texts...)
	var stderr bytes.Buffer
	cmd := exec.Command("node", filepath.Join(reader, "read.mjs"), path)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	expect.No(t, err, &stderr)
	var want strings.Builder
	for _, e := range events {
		fmt.Fprintln(&want, e.EventID)
	}
	expect.True(t, string(out) == want.String(), "it finds the events\n%.500s\nwant\n%.500s", out, want.String())
}

// The digest in an event's CID is its id: who has the one has the other.
func TestAnEventsBlockIsNamedByItsID(t *testing.T) {
	data, events := sound(t)
	a := expect.Of(open(t.Context(), bytes.NewReader(data)))(t)
	for i, codec := range []int{codecDAGJSON, codecRaw} {
		e := events[i]
		c := cidOf(codec, e.Canonical())
		id := hex.EncodeToString([]byte(c[len(c)-sha256.Size:]))
		expect.True(t, id == e.EventID && codecFor(e.Canonical()) == codec, "event %s has the CID %s with digest %s", e.EventID, c, id)
		block, err := a.block(c)
		expect.True(t, err == nil && bytes.Equal(block, e.Canonical()), "%s: %s %v", c, block, err)
	}
	// A CID that other tools give the same block (sha2-256, dag-json, base32).
	expect.Is(t, cidOf(codecDAGJSON, []byte(`{}`)).String(), "baguqeeraiqjw7i2vwntyuekgvulpp2det2kpwt6cd7tx5ayqybqpmhfk76fa")
}

func TestNamesThatSortOtherwiseAreSeen(t *testing.T) {
	for text, codec := range map[string]int{
		`{"a":"🙂","b":["/"]}`:    codecDAGJSON,
		`{"a":"x\"/\":y"}`:       codecDAGJSON,
		`{"/":1}`:                codecRaw,
		`{"a":{"🙂":1}}`:          codecRaw,
		`{"a":[{"\ue000":"x"}]}`: codecDAGJSON,
	} {
		canon := expect.Of(core.Canonical([]byte(text)))(t)
		if text == `{"a":[{"\ue000":"x"}]}` {
			codec = codecRaw // once the escape is written out
		}
		expect.Is(t, codecFor(canon), codec, text)
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
		_, _ = a.read(func(rec dag.Record) error {
			if again, err := dag.Parse(rec.Event.JSON()); err != nil || again.EventID != rec.Event.EventID {
				t.Fatalf("%s: %v", rec.Event.JSON(), err)
			}
			return nil
		})
	})
}
