package dag_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestVectorsHaveTheirIDsAndEdges(t *testing.T) {
	r := newRig(t)
	kinds := map[dag.Kind]bool{}
	for _, v := range vectors(t) {
		e, err := dag.Parse(v.Event)
		expect.No(t, err, v.Name)
		kinds[e.Kind] = true
		expect.Is(t, e.EventID, v.EventID, v.Name, "id")
		expect.No(t, r.Ledger.Append(t.Context(), alice, func(tx *audit.Tx) error {
			_, err := r.ObserveIn(tx, e)
			return err
		}), v.Name)
		got := expect.Of(r.Get(t.Context(), acme, v.EventID))(r.T)
		var edges []string
		for _, x := range got.Edges {
			edges = append(edges, shown(x))
		}
		want := slices.Clone(v.Edges)
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], "{id}", v.EventID)
		}
		slices.Sort(want)
		slices.Sort(edges)
		expect.True(t, slices.Equal(edges, want), "%s: edges\n%s\nwant\n%s", v.Name, strings.Join(edges, "\n"), strings.Join(want, "\n"))
	}
	for _, k := range dag.Kinds() {
		expect.True(t, kinds[k], "no vector of kind %s", k)
	}
	if len(dag.Kinds()) != 19 || len(dag.EdgeTypes()) != 22 {
		t.Errorf("%d kinds, %d edge types", len(dag.Kinds()), len(dag.EdgeTypes()))
	}
}

func TestAnIDFollowsFromTheCanonicalFormAlone(t *testing.T) {
	for _, v := range vectors(t) {
		e := expect.Of(dag.Parse(v.Event))(t)
		canon, err := jcs.Transform(v.Event)
		if err != nil || !bytes.Equal(canon, e.Canonical()) {
			t.Errorf("%s: canonical\n%s\nby the other implementation\n%s %v", v.Name, e.Canonical(), canon, err)
		}
		again, err := dag.Parse(e.JSON()) // with its id
		expect.True(t, err == nil && again.EventID == e.EventID && bytes.Equal(again.Canonical(), e.Canonical()), "%s: read again: %v", v.Name, err)
		built, err := dag.NewEvent(e.Head, e.Body)
		expect.True(t, err == nil && built.EventID == e.EventID, "%s: built of its parts it has the id %s: %v", v.Name, built.EventID, err)
	}
}

func TestAChangedEventDoesNotKeepItsID(t *testing.T) {
	for _, v := range vectors(t) {
		e := expect.Of(dag.Parse(v.Event))(t)
		changed := bytes.Replace(e.JSON(), []byte("2026-01-02"), []byte("2026-01-03"), 1)
		expect.Says(t, expect.Fault(dag.Parse(changed)), e.EventID, v.Name)
	}
}

const (
	runHead = `"ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a"`
	anID    = `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
)

func TestEveryMistakeIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, event string
		fields      []string
	}{
		{"no kind", `{}`, []string{"kind"}},
		{"kind", `{"kind":"tool_cal"}`, []string{"kind"}},
		{"many", `{"kind":"tool_call","args":[]}`, []string{"ts", "run_id", "agent_id", "server", "tool", "call_id", "args", "requested_by.event_id"}},
		{"unknown field", `{"kind":"run_started",` + runHead + `,"why":1}`, []string{"why"}},
		{"zone", `{"kind":"run_started","ts":"2026-01-02T03:04:05+01:00","run_id":"r","agent_id":"a"}`, []string{"ts"}},
		{"enums", `{"kind":"tool_result",` + runHead + `,"call_id":"c","status":"fine","result":{}}`, []string{"status"}},
		{"reason", `{"kind":"interruption",` + runHead + `,"reason":"bored"}`, []string{"reason", "affects"}},
		{"event ref", `{"kind":"interruption",` + runHead + `,"reason":"crash","affects":[{"event_id":"x"}]}`, []string{"affects[0].event_id"}},
		{"no fault", `{"kind":"tool_result",` + runHead + `,"call_id":"c","status":"ok","result":{},"error":{"code":"x","message":"y"}}`, []string{"error"}},
		{"correlation", `{"kind":"model_request",` + runHead + `,"model":"m","params":{},"input_refs":[]}`, []string{"correlation_id"}},
		{"itself", `{"kind":"substitution",` + runHead + `,"original_event":{"event_id":` + anID + `},"replacement_event":{"event_id":` + anID + `}}`, []string{"replacement_event"}},
		{
			"plan", `{"kind":"agent_forked","ts":"2026-01-02T03:04:05Z","agent_id":"a","from_branch":"main","to_branch":"main","at_event":{"event_id":` + anID + `},
			"volume_plan":[{"resource":"r","mode":"copy"},{"resource":"r","mode":"discard","kept_by":"main"}]}`,
			[]string{"volume_plan[0].mode", "to_branch", "volume_plan[1].resource", "volume_plan[1].kept_by"},
		},
		{"outcome", `{"kind":"snapshot_created","ts":"2026-01-02T03:04:05Z","agent_id":"a","resource_ref":"r","snapshot_ref":"s","outcome":"unsupported"}`, []string{"outcome"}},
		{"restore", `{"kind":"restore_attempted","ts":"2026-01-02T03:04:05Z","agent_id":"a","snapshot_ref":"s","outcome":"error","new_resource_ref":"r"}`, []string{"new_resource_ref"}},
		{
			"node", `{"kind":"run_started",` + runHead + `,"nodes":[{"type":"Resource","id":"r","kind":"disk","imperative":true,"capabilities":["restore","fly"]},{"type":"Branch"}]}`,
			[]string{"nodes[0].kind", "nodes[0].name", "nodes[0].capabilities[1]", "nodes[0].imperative", "nodes[1].type"},
		},
		{
			"part", `{"kind":"run_started",` + runHead + `,"nodes":[{"type":"Message","id":"m","role":"user","created_at":"2026-01-02T03:04:05Z","content":[{"type":"text","text":"x","url":"y"}]}]}`,
			[]string{"nodes[0].content[0].url"},
		},
		{"handle", `{"kind":"run_started",` + runHead + `,"nodes":[{"type":"Handle","id":"h","resource_ref":"r","provider":"docker","provider_id":"x","restorable":true}]}`, []string{"nodes[0].restorable"}},
		{
			"edge", `{"kind":"run_started",` + runHead + `,"edges":[{"type":"SPAWNED_FROM","from":{"type":"Agent","id":"a"},"to":{"type":"Agent","id":"a"},"attrs":{"seq":3}}]}`,
			[]string{"edges[0].from.type", "edges[0].to", "edges[0].attrs.seq"},
		},
		{"times", `{"kind":"run_started",` + runHead + `,"edges":[{"type":"OWNS_RESOURCE","from":{"type":"Agent","id":"a"},"to":{"type":"Resource","id":"r"},"valid_to":"2026-01-01T00:00:00Z"}]}`, []string{"edges[0].valid_to"}},
		{"hidden", `{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r\u202e","agent_id":"a"}`, []string{"run_id"}},
	} {
		_, err := dag.Parse([]byte(c.event))
		var refused *core.Error
		if !errors.As(err, &refused) || refused.Code != core.InvalidInput {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, f := range c.fields {
			expect.Has(t, refused.Message, f+":", c.name, f, "is not named in")
		}
		got := refused.Details["field"]
		expect.True(t, got == c.fields[0] || c.name == "zone", "%s: first field %v", c.name, got)
	}
}

func TestNumbersThatWouldNotSurviveAreRefused(t *testing.T) {
	with := func(n string) string {
		return `{"kind":"tool_result",` + runHead + `,"call_id":"c","status":"ok","result":{"n":` + n + `}}`
	}
	for _, bad := range []string{"9007199254740992", "-9007199254740993", "1e400", "1e-400", "0.1234567890123456789", "1.00000000000000000001", "1e-99999999999999999999", "123456789012345678e-3"} {
		expect.Says(t, expect.Fault(dag.Parse([]byte(with(bad)))), "number", bad)
	}
	same := map[string]string{"1.0": "1", "1e2": "100", "0.10": "0.1", "-0": "0", "5e-324": "5e-324", "0.30000000000000004": "0.30000000000000004", "1E-7": "1e-7", "9007199254740991": "9007199254740991"}
	for given, canon := range same {
		e, err := dag.Parse([]byte(with(given)))
		if err != nil || !strings.Contains(string(e.Canonical()), `"n":`+canon+`}`) {
			t.Errorf("%s: %s %v", given, e.Canonical(), err)
		}
	}
}

func TestHostileInputIsBounded(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for name, event := range map[string]string{
		"deep":  `{"kind":"tool_call",` + runHead + `,"args":` + deep + `}`,
		"large": `{"kind":"tool_call",` + runHead + `,"args":{"x":"` + strings.Repeat("x", dag.MaxEvent) + `"}}`,
		"twice": `{"kind":"run_started","kind":"run_started",` + runHead + `}`,
		"long":  `{"kind":"run_started","ts":"2026-01-02T03:04:05Z","agent_id":"a","run_id":"` + strings.Repeat("r", 600) + `"}`,
		"array": `[]`,
		"utf8":  "{\"kind\":\"run_started\"," + runHead + ",\"task_id\":\"\xff\"}",
	} {
		expect.Is(t, core.AsError(expect.Fault(dag.Parse([]byte(event)))).Code, core.InvalidInput, name)
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Event))
	}
	f.Add([]byte(`{"kind":"tool_result",` + runHead + `,"call_id":"c","status":"ok","result":{"n":1e5}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := dag.Parse(data)
		if err != nil {
			code := core.AsError(err).Code
			expect.Must(t, code == core.InvalidInput, "%s: %v", code, err)
			return
		}
		again, err := dag.Parse(e.JSON())
		expect.Must(t, err == nil && again.EventID == e.EventID, "%s does not survive: %v", e.JSON(), err)
		built, err := dag.NewEvent(e.Head, e.Body)
		expect.Must(t, err == nil, "%s can't be built of its parts: %v", e.JSON(), err)
		twice, err := dag.NewEvent(built.Head, built.Body)
		expect.Must(t, err == nil && twice.EventID == built.EventID, "not the same twice: %v", err)
	})
}
