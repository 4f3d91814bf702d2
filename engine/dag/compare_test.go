package dag_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// does emits a run of an agent of what is told: "user …" and "agent …" say
// something, "TOOL ARGS -> STATUS" is a call.
func (r *rig) does(run, agent string, steps ...string) {
	r.T.Helper()
	x := dag.NewTranscript(run, dag.RunInfo{AgentID: agent, TaskID: "task-" + run}, r.at)
	for i, step := range steps {
		r.at = r.at.Add(time.Second)
		x.At(r.at)
		word, rest, _ := strings.Cut(step, " ")
		switch word {
		case "user", "agent":
			role := map[string]dag.MessageRole{"user": dag.RoleUser, "agent": dag.RoleAssistant}[word]
			x.Said(dag.Spoken{Role: role, Content: []dag.ContentPart{{Type: "text", Text: rest}}})
		case "asks":
			x.Asked("1", dag.ModelAsk{Model: "m"})
			x.Answered("1", dag.ModelAnswer{Status: dag.CallOK, Usage: &dag.Usage{PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7}})
		default:
			args, status, _ := strings.Cut(rest, " -> ")
			x.Called("s", word, fmt.Sprint("c-", i), core.Raw(args))
			var fault *dag.Fault
			if status != "ok" {
				fault = &dag.Fault{Code: status, Message: "it did not work"}
			}
			x.Returned(fmt.Sprint("c-", i), dag.CallStatus(status), nil, fault)
		}
	}
	events := expect.Of(x.Finish(true))(r.T)
	expect.Of(r.Emit(r.T.Context(), alice, events...))(r.T)
}

// shape is a comparison in a few words.
func shape(c dag.Comparison) string {
	var all []string
	for _, s := range c.Steps {
		text := func(a *dag.Act) string {
			if a == nil {
				return ""
			}
			return strings.TrimSpace(a.Text + " " + strings.Fields(a.Result + " .")[0])
		}
		all = append(all, strings.TrimSpace(s.Op+"|"+text(s.A)+"|"+text(s.B)))
	}
	return strings.ReplaceAll(strings.Join(all, "\n"), " .", "")
}

func TestRunsAreComparedStepByStep(t *testing.T) {
	r := newRig(t)
	r.does("a", "ada", "user build it", "asks", `make {"t":1} -> ok`, `test {} -> ok`, "agent done", "agent bye")
	r.does("b", "bob", "user build it", `make {"t":1} -> ok`, `look {} -> ok`, `test {} -> error`, "agent it fails")
	c, err := r.Compare(t.Context(), acme, "run:a", "bob")
	r.No(err)
	want := `same|user: build it|user: build it
same|make {"t":1} ok|make {"t":1} ok
b||look {} ok
changed|test {} ok|test {} error
changed|assistant: done|assistant: it fails
a|assistant: bye|`
	got := shape(c)
	expect.True(t, got == want, "got\n%s\nwant\n%s", got, want)
	if c.A.AgentID != "ada" || c.A.Messages != 3 || c.A.Calls != 2 || c.A.Failed != 0 || c.B.Failed != 1 || c.A.Requests != 1 || c.A.Usage.TotalTokens != 7 || c.A.Exit != "success" || c.A.Tasks[0] != "task-a" {
		t.Errorf("%+v %+v", c.A, c.B)
	}
	if same, err := r.Compare(t.Context(), acme, "task:task-a", "agent:ada"); err != nil || strings.Contains(shape(same), "changed") || len(same.Steps) != 5 {
		t.Error(shape(same), err)
	}
	for _, names := range [][2]string{{"run:a", "run:nosuch"}, {"x:y", "run:a"}, {"nobody", "run:a"}} {
		_, err = r.Compare(t.Context(), acme, names[0], names[1])
		expect.Fails(t, err, names)
	}
}

func TestAForkIsComparedWithWhatCameAfterIt(t *testing.T) {
	r := newRig(t)
	r.does("before", "ada", "user plan it", "agent planned")
	at := r.of("before", dag.KindHistoryAppend)[1]
	fork := r.head("ada", "")
	fork.Nodes = []dag.Node{dag.NewNode(&dag.Subagent{ID: "ada-2", ParentAgentID: "ada"})}
	r.emit(fork, &dag.AgentForked{FromBranch: "main", ToBranch: "try", AtEvent: ref(at)})
	r.does("after", "ada", "user build it", "agent built with make")
	r.does("fork", "ada-2", "user build it", "agent built with go")
	for _, order := range [][2]string{{"agent:ada", "agent:ada-2"}, {"agent:ada-2", "agent:ada"}} {
		c := expect.Of(r.Compare(t.Context(), acme, order[0], order[1]))(r.T)
		origin := c.A
		if order[0] == "agent:ada-2" {
			origin = c.B
		}
		if got := shape(c); len(c.Steps) != 2 || !strings.HasPrefix(got, "same|user: build it") || origin.Since != at.EventID {
			t.Errorf("%v, since %q:\n%s", order, origin.Since, got)
		}
	}
}

func TestFilesAreComparedByTheirDiffs(t *testing.T) {
	r := newRig(t)
	for run, diffs := range map[string][]string{
		"a": {"x.go\n@@ -1 +1 @@\n-a\n+b", "y.go\n@@ -0,0 +1 @@\n+new"},
		"b": {"x.go\n@@ -1 +1,2 @@\n-a\n+b\n+c", "z.go\n@@ -1 +0,0 @@\n-old", "y.go\n@@ -0,0 +1 @@\n+new"},
	} {
		for i, d := range diffs {
			h := r.head("agent-"+run, run)
			id := fmt.Sprint(run, i)
			h.Nodes = []dag.Node{r.message(id, d, dag.RoleTool)}
			r.emit(h, &dag.HistoryAppend{List: "diff", MessageRef: id})
		}
		h := r.head("agent-"+run, run) // of which there is no diff
		h.Nodes = []dag.Node{dag.NewNode(&dag.Resource{ID: dag.FileID("w"), Kind: dag.ResourceFile, Name: "w", Capabilities: []dag.Capability{}})}
		r.emit(h, &dag.Interruption{Reason: dag.ReasonCanceled, Affects: []dag.EventRef{}})
	}
	c := expect.Of(r.Compare(t.Context(), acme, "run:a", "run:b"))(r.T)
	for n := range c.Files {
		f := &c.Files[n]
		expect.True(t, strings.Contains(f.DiffA+f.DiffB, "@@") == (f.Path != "w"), "the diffs of %s: %q %q", f.Path, f.DiffA, f.DiffB)
		c.Files[n].DiffA, c.Files[n].DiffB = "", ""
	}
	got, want := fmt.Sprint(c.Files), "[{changed x.go +1 -1 +2 -1  } {same y.go +1 -0 +1 -0  } {changed w changed changed  } {b z.go  +0 -1  }]"
	expect.True(t, got == want, "got %s, want %s", got, want)
}

func TestALongRunIsComparedUpToABound(t *testing.T) {
	r := newRig(t)
	var all []dag.Event
	for i := range 10_050 {
		all = append(all, r.event(r.head("ada", "long"), &dag.HistoryAppend{List: "main", MessageRef: fmt.Sprint("m", i)}))
	}
	for len(all) > 0 {
		n := min(len(all), dag.MaxBatch)
		expect.Of(r.Emit(t.Context(), alice, all[:n]...))(r.T)
		all = all[n:]
	}
	r.does("short", "bob", "user hi")
	c := expect.Of(r.Compare(t.Context(), acme, "run:long", "run:short"))(r.T)
	expect.True(t, c.A.More && c.A.Events == 10_000 && !c.B.More, "%+v", c.A)
}
