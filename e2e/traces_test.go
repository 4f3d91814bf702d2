package e2e

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"swarmdeck/expect"
)

// receiver is a collector that takes spans over OTLP/HTTP.
type receiver struct {
	*httptest.Server
	t     *testing.T
	down  atomic.Int32 // requests to refuse for now
	mu    sync.Mutex
	spans map[string]*tracepb.Span // by id
	text  strings.Builder
	about string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	c := &receiver{t: t, spans: map[string]*tracepb.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *receiver) take(w http.ResponseWriter, r *http.Request) {
	if c.down.Add(-1) >= 0 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	var in tracepb.TracesData
	if err != nil || proto.Unmarshal(data, &in) != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Api-Key") != "k y" {
		c.t.Errorf("%s %v: %v", r.URL, r.Header, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(prototext.Format(&in))
	for _, rs := range in.ResourceSpans {
		c.about = prototext.MarshalOptions{}.Format(rs.Resource)
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans[hex.EncodeToString(s.SpanId)] = s
			}
		}
	}
}

// trace is a trace as its tree, once a span of each of the names is there: a
// span a line, those below it indented, in the order of their times.
func (c *receiver) trace(id string, names ...string) string {
	c.t.Helper()
	tree := ""
	expect.Await(c.t, "the spans "+strings.Join(names, ", ")+" of "+id, func() bool {
		tree = c.draw(id)
		for _, name := range names {
			if !strings.Contains(tree, name) {
				return false
			}
		}
		return true
	})
	return tree
}

// said is all that was told, as text.
func (c *receiver) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *receiver) draw(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	below := map[string][]*tracepb.Span{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == id {
			parent := hex.EncodeToString(s.ParentSpanId)
			if _, known := c.spans[parent]; !known {
				parent = ""
			}
			below[parent] = append(below[parent], s)
		}
	}
	var b strings.Builder
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for len(below[parent]) > 0 {
			first := 0
			for i, s := range below[parent] {
				if o := below[parent][first]; s.StartTimeUnixNano < o.StartTimeUnixNano || s.StartTimeUnixNano == o.StartTimeUnixNano && s.Name < o.Name {
					first = i
				}
			}
			s := below[parent][first]
			below[parent] = append(below[parent][:first:first], below[parent][first+1:]...)
			expect.True(c.t, s.EndTimeUnixNano >= s.StartTimeUnixNano, "%s ends before it begins", s.Name)
			bad := ""
			if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				bad = " !" + attribute(s, "error.type")
			}
			fmt.Fprintf(&b, "%s%s%s\n", strings.Repeat("  ", depth), s.Name, bad)
			walk(hex.EncodeToString(s.SpanId), depth+1)
		}
	}
	walk("", 0)
	return b.String()
}

func attribute(s *tracepb.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// traced is a daemon whose work is told to a collector.
func traced(t *testing.T) (*daemon, *receiver) {
	c := newReceiver(t)
	u := newUser(t)
	u.env = append(u.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=k%20y", "OTEL_BSP_SCHEDULE_DELAY=20",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	u.ok("tenant", "create", "t_acme")
	return u.daemon(), c
}

func TestATaskIsTracedFromItsDispatchToItsEnd(t *testing.T) {
	t.Parallel()
	d, c := traced(t)
	const input = `{"argv":["sh","-c","echo $TRACEPARENT secret-output; exit 3"],"env":{"TOKEN":"secret-env"}}`
	task := d.ok("task", "dispatch", "--kind", "exec.run", "--input", input, "--max-attempts", "1", "-o", "json")
	d.run("task", "wait", field(task, "task_id"))
	tree := c.trace(field(task, "trace_id"), "task exec.run", "run exec.run", "queue")
	want := "task exec.run !exit_nonzero\n  queue\n  run exec.run !exit_nonzero\n"
	expect.True(t, tree == want, "%s\nwant\n%s", tree, want)
	// What the process was given as its parent is the span of its run.
	out := d.ok("result", "show", field(task, "task_id"), "-o", "json")
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.spans {
		expect.True(t, s.Name != "run exec.run" || strings.Contains(out, "00-"+field(task, "trace_id")+"-"+id+"-01"),
			"the process's parent is not %s: %s", id, out)
	}
	for _, leak := range []string{"secret", "TRACEPARENT", "echo"} {
		expect.True(t, !strings.Contains(c.text.String(), leak), "%s was told:\n%s", leak, c.text.String())
	}
	for _, want := range []string{"service.name", "swarmdeck", "deployment.environment.name"} {
		expect.Has(t, c.about, want, "no")
	}
}

func TestRetriesChildrenAndApprovalsHangTogether(t *testing.T) {
	t.Parallel()
	d, c := traced(t)
	// The first attempt fails; the second tells what it finds in its environment
	// to a person, who dispatches a task below it.
	job := "test -e tried || { touch tried; kill -9 $$; }\necho $TRACEPARENT >told\nmv told parent\nuntil test -e enough; do sleep 0.02; done\n"
	expect.No(t, os.WriteFile(filepath.Join(d.home, "job"), []byte(job), 0o600))
	remote := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	d.env = append(d.env, "TRACEPARENT="+remote)
	task := d.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","job"]}`, "-o", "json")
	var parent []byte
	expect.Await(t, "parent", func() (ok bool) {
		var err error
		parent, err = os.ReadFile(filepath.Join(d.home, "parent"))
		return err == nil
	})
	below := *d.user
	below.env = append(slices.Clone(d.env), "TRACEPARENT="+strings.TrimSpace(string(parent)))
	below.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "--wait")
	expect.No(t, os.WriteFile(filepath.Join(d.home, "enough"), nil, 0o600))
	d.ok("task", "wait", field(task, "task_id"))
	if trace := field(task, "trace_id"); trace != "4bf92f3577b34da6a3ce929d0e0e4736" || field(task, "parent_span_id") != "00f067aa0ba902b7" {
		t.Fatalf("the trace of who asked was not taken up: %s", task)
	}
	tree := c.trace("4bf92f3577b34da6a3ce929d0e0e4736", "    task exec.run")
	want := "task exec.run\n  queue\n  run exec.run !killed\n  queue\n  run exec.run\n    task exec.run\n      queue\n      run exec.run\n"
	expect.True(t, tree == want, "%s\nwant\n%s", tree, want)
	_, out, _ := d.run("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","/nonexistent-dir"]}`, "--trace", "00000000000000000000000000000abc", "-o", "json")
	id := field(d.ok("approval", "list", "--open", "-o", "json"), "approval_id")
	d.ok("approval", "deny", id, "--reason", "secret reason", "--abort")
	tree = c.trace("00000000000000000000000000000abc", "task exec.run", "approval")
	want = "task exec.run !approval_denied\n  approval\n  decide task.start\n  queue\n  decide task.start\n"
	expect.True(t, tree == want, "%s of %s\nwant\n%s", tree, out, want)
	expect.True(t, !strings.Contains(c.said(), "secret"), "a reason was told")
}

func TestAnAgentsTurnIsTracedWithItsTools(t *testing.T) {
	t.Parallel()
	d, c := traced(t)
	agent := filepath.Join(d.home, "agent.sh")
	expect.No(t, os.WriteFile(agent, []byte(`read -r line
printf '%s\n' '{"type":"tool_request","call_id":"1","tool":"fs.read","args":{"path":"secret-path"},"intent":"look"}'
read -r answer
printf '%s\n' '{"type":"tool_result","call_id":"1","status":"error","result":{"text":"secret-result"}}'
printf '%s\n' '{"type":"message","text":"secret-message"}'
printf '{"type":"result","status":"succeeded","output":{"heard":"%s"}}\n' "$(printf %s "$line" | sed 's/.*traceparent":"\([^"]*\)".*/\1/')"
`), 0o700))
	d.ok("agent", "create", "ada", "--project", "p", "--role", "r", "--", "sh", agent)
	task := d.ok("agent", "assign", "ada", "secret prompt", "--wait", "-o", "json")
	trace := field(task, "trace_id")
	tree := c.trace(trace, "task agent.prompt", "invoke_agent", "execute_tool")
	for _, want := range []string{"\n  run agent.prompt\n", "\n    invoke_agent ada\n", "\n      execute_tool fs.read !"} {
		expect.Has(t, tree, want, "no")
	}
	expect.Has(t, d.ok("result", "show", field(task, "task_id"), "-o", "json"), "00-"+trace+"-", "the agent was not told its parent")
	if strings.Contains(c.said(), "secret") {
		t.Errorf("what was said was told:\n%s", c.said())
	}
}

func TestTheStepsOfASkillAreBelowIt(t *testing.T) {
	t.Parallel()
	d, c := traced(t)
	example := expect.Of(filepath.Abs("examples/fetch"))(t)
	d.ok("skill", "load", example)
	run := d.ok("skill", "invoke", "fetch", "--params", `{"room":"kitchen"}`, "--wait", "-o", "json")
	tree := c.trace(field(run, "trace_id"), "task skill.invoke", "skill grasp")
	want := "\n  run skill.invoke\n    skill fetch\n      skill navigate\n      skill detect\n      skill grasp\n"
	expect.True(t, strings.Contains(tree, want), "%s\nwant\n%s", tree, want)
	expect.True(t, !strings.Contains(c.said(), "kitchen"), "a parameter was told")
}

func TestACollectorThatIsAwayCostsNothingAndGetsAllLater(t *testing.T) {
	t.Parallel()
	d, c := traced(t)
	c.down.Store(2)
	var traces []string
	for range 5 {
		traces = append(traces, field(d.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "--wait", "-o", "json"), "trace_id"))
	}
	for _, id := range traces {
		c.trace(id, "task exec.run", "run exec.run")
	}
	expect.True(t, c.down.Load() < 0, "it was never away")
}
