package dag_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// lines are n events of a run, one a line; those numbered in bad say what they say.
func lines(n int, bad map[int]string) io.Reader {
	var b bytes.Buffer
	for i := range n {
		if text, is := bad[i+1]; is {
			b.WriteString(text + "\n")
			continue
		}
		fmt.Fprintf(&b, `{"kind":"history_append","ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"ada","list":"main","message_ref":"m-%d"}`+"\n", i)
	}
	return &b
}

func TestAStreamOfEventsIsTakenInByBatches(t *testing.T) {
	const n = 2*dag.MaxBatch + 7
	for _, c := range []struct {
		name  string
		in    io.Reader
		first dag.Emitted // then all of them, sound
		says  string
	}{
		{"sound", lines(n, nil), dag.Emitted{Events: n, New: n}, ""},
		{"empty", strings.NewReader(""), dag.Emitted{}, ""},
		{"garbage in the second batch", lines(n, map[int]string{1502: "garbage"}), dag.Emitted{Events: 1000, New: 1000}, "after 1000 events: line 1502: "},
		{"refused in the third batch", lines(n, map[int]string{
			2003: `{"kind":"history_append","ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"bob","list":"main","message_ref":"m"}`,
		}), dag.Emitted{Events: 2000, New: 2000}, `after 2000 events: agent_id: run r-1 is of agent "ada", not "bob"`},
		{"a line that is too long", io.MultiReader(lines(3, nil), strings.NewReader(strings.Repeat("x", dag.MaxEvent+3))), dag.Emitted{}, "after 0 events: line 4: longer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			steps := 0
			stream := func(in io.Reader) (dag.Emitted, error) {
				return r.EmitStream(t.Context(), alice, dag.ReadEvents(in), func(dag.Emitted) { steps++ })
			}
			got, err := stream(c.in)
			expect.Says(t, err, c.says)
			expect.Is(t, got, c.first)
			want := int(got.Events+dag.MaxBatch-1) / dag.MaxBatch
			expect.True(t, steps == want, "told %d times, want %d", steps, want)
			again := expect.Of(stream(lines(n, nil)))(r.T)
			expect.True(t, again.Events == n && again.New == n-c.first.New, "again: %+v", again)
		})
	}
}

func TestAnAgentsStreamSpeaksForItselfAlone(t *testing.T) {
	r := newRig(t)
	by := alice
	by.Kind, by.Name = "agent", "bob"
	expect.Says(t, expect.Fault(r.EmitStream(t.Context(), by, dag.ReadEvents(lines(1, nil)), func(dag.Emitted) {})), "can't speak for")
}
