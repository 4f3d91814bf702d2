package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// recordScript has an agent read a file, and then write another, for which it
// needs a person's word.
const recordScript = `
up $HERE/EXAMPLE
await -t 120s agent AGENT status=idle
agent assign AGENT 'READ THEN RUN: echo hello > made.txt'
await -t 60s approval 1
! exists made.txt
approval list --open -o json
capture A approval_id
approval approve $A --reason 'it only writes here'
agent history AGENT -o json --page-size 1
capture T task_id
await -t 120s task $T status=succeeded
exec cat made.txt
stdout '^hello$'
agent show AGENT -o json
stdout '"usage":{"tokens":360,'
agent log AGENT --page-size 50
stdout 'model .*: ok, 100 tokens in .0 cached., 20 out'
audit verify
audit reconcile
-- known.txt --
the known text
`

// TestARealRunIsReplayedFromItsRecordAlone reads the record in a data file that
// holds nothing else: who said what, what the model was asked and answered,
// which calls there were, what was decided on them and what came of them.
func TestARealRunIsReplayedFromItsRecordAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tenant, read string
		tool, shell  string // of the model
		seen         string // the kind of the first call, as the agent tells it
	}{
		"gemini-cli": {
			tenant: "t_gemini", read: `CALL: read_file {"file_path":"known.txt"}`, tool: "read_file", shell: "run_shell_command", seen: "read",
		},
		"codex-acp": {
			tenant: "t_codex", read: `RUN: cat known.txt`, tool: "exec_command", shell: "exec_command", seen: "read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play, dir, _ := withAgents(t, name)
			agent := realAgents[name].agent
			play(strings.NewReplacer("EXAMPLE", name, "AGENT", agent, "READ", c.read).Replace(recordScript))
			events := alone(t, filepath.Join(dir, "swarm.db"), c.tenant, agent)
			got := slices.DeleteFunc(replay(t, events), func(line string) bool { // it doesn't know the model
				return strings.HasPrefix(line, "assistant: Model metadata")
			})
			want := []string{
				"run_started by user",
				"approve by policy of the start",
				"user: " + regexp.QuoteMeta(c.read+" THEN RUN: echo hello > made.txt"),
				`asked, after .*user: .*THEN RUN: echo hello > made.txt.*`,
				"answered 100[+]20: " + c.tool + " .*known.txt.*",
				"call " + c.seen + " .*known.txt.* on the answer",
				"result ok .*",
				"asked, after .*tool: .*known text.*",
				"answered 100[+]20: " + c.shell + " .*echo hello > made.txt.*",
				"call execute .*echo hello > made.txt.* on the answer",
				"hitl by policy of execute",
				"approve by " + (&user{t: t}).name() + " of execute",
				"result ok .*",
				"execute wrote made.txt",
				"asked, after .*tool: .*",
				"answered 100[+]20: FINAL: the tool said: .*",
				"assistant: FINAL: the tool said: .*",
				"approve by policy of the result",
				"run_finished with success",
			}
			for i := range max(len(got), len(want)) {
				expect.Must(t, i < len(got) && i < len(want) && regexp.MustCompile("(?s)^"+want[i]+"$").MatchString(got[i]),
					"line %d of the replay is not as expected:\n%s", i, strings.Join(got, "\n"))
			}
		})
	}
}

// alone takes the record into a data file of its own, and lists the events of
// an agent's only run there.
func alone(t *testing.T, data, tenant, agent string) []dag.Event {
	t.Helper()
	u := newUser(t)
	run := func(args ...string) []byte {
		t.Helper()
		cmd := u.command(args...)
		var out, bad bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &bad
		err := cmd.Run()
		expect.Must(t, err == nil, "%v: %v\n%s", args, err, bad.String())
		return out.Bytes()
	}
	record, fresh := filepath.Join(t.TempDir(), "record.jsonl"), filepath.Join(t.TempDir(), "fresh.db")
	run("--data", data, "--tenant", tenant, "dag", "export", "jsonl", record)
	run("--data", fresh, "tenant", "create", tenant)
	run("--data", fresh, "dag", "import", "jsonl", record)
	first := run("--data", fresh, "dag", "events", "--agent", agent, "--kind", "run_started", "-o", "json")
	var started struct {
		Run string `json:"run_id"`
	}
	expect.No(t, core.DecodeStored(first, &started), first)
	var all []dag.Event
	for line := range bytes.Lines(run("--data", fresh, "dag", "events", "--run", started.Run, "-o", "json", "--page-size", "100")) {
		var in map[string]core.Raw
		expect.No(t, core.DecodeStored(line, &in))
		for _, ours := range []string{"pos", "seq", "recorded_at"} {
			delete(in, ours)
		}
		e, err := dag.Parse(core.MustEncode(in)) // which checks its id too
		expect.No(t, err, line)
		all = append(all, e)
	}
	return all
}

// replay tells a run's events in words.
func replay(t *testing.T, events []dag.Event) (lines []string) {
	t.Helper()
	messages, kinds, calls := map[string]*dag.Message{}, map[string]dag.Kind{}, map[string]*dag.ToolCall{}
	correlation := map[string]string{}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	says := func(id string) string {
		m := messages[id]
		expect.Must(t, m != nil, "message %s is not in the record", id)
		text := ""
		for _, p := range m.Content {
			text += p.Text + p.Name + " " + string(p.Input) + string(p.Output)
		}
		return strings.TrimSpace(text)
	}
	for _, e := range events {
		kinds[e.EventID], correlation[e.EventID] = e.Kind, e.CorrelationID
		for _, n := range e.Nodes {
			if m, ok := n.Body.(*dag.Message); ok {
				messages[m.ID] = m
			}
		}
		switch b := e.Body.(type) {
		case *dag.RunStarted:
			say("run_started by %s", b.Reason)
		case *dag.RunFinished:
			say("run_finished with %s", b.Exit)
		case *dag.HistoryAppend:
			m := messages[b.MessageRef]
			switch b.List {
			case dag.ListMain:
				say("%s: %s", m.Role, says(b.MessageRef))
				continue
			case dag.ListDecisions:
			case dag.ListFiles:
				say("%s wrote %s", calls[e.Edges[0].To.ID].Tool, filepath.Base(says(b.MessageRef)))
				continue
			default: // what it used, and what it came to
				continue
			}
			var d struct {
				Decision string `json:"decision"`
				By       string `json:"decided_by"`
			}
			expect.No(t, core.DecodeStored(m.Content[0].Input, &d))
			if len(e.Edges) == 0 {
				what := "result"
				if len(lines) == 1 {
					what = "start"
				}
				say("%s by %s of the %s", d.Decision, d.By, what)
				continue
			}
			say("%s by %s of %s", d.Decision, d.By, calls[e.Edges[0].To.ID].Tool)
		case *dag.ModelRequest:
			text := ""
			for _, in := range b.InputRefs {
				expect.True(t, in.Event == "" || kinds[in.Event] == dag.KindModelRequest, "a request goes on from %s", kinds[in.Event])
				if in.Message != "" {
					text += fmt.Sprintf(" %s: %s", messages[in.Message].Role, says(in.Message))
				}
			}
			say("asked, after%s", text)
		case *dag.ModelResponse:
			expect.True(t, b.Status == dag.CallOK && kinds[b.RequestID] == dag.KindModelRequest && correlation[b.RequestID] == e.CorrelationID,
				"answer %+v to %s", b, kinds[b.RequestID])
			say("answered %d+%d: %s", b.Usage.PromptTokens, b.Usage.CompletionTokens, says(b.OutputRef))
		case *dag.ToolCall:
			calls[e.EventID] = b
			on := "nothing"
			if kinds[b.RequestedBy.EventID] == dag.KindModelResponse && correlation[b.RequestedBy.EventID] == e.CorrelationID {
				on = "the answer"
			}
			say("call %s %s on %s", b.Tool, b.Args, on)
		case *dag.ToolResult:
			say("result %s %s", b.Status, b.Result)
		default:
			say("%s", e.Kind)
		}
	}
	return lines
}
