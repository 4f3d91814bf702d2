package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// record is the part of the walk that uses every command of the agents'
// record.
func (w *walk) record() {
	t := w.t
	emit := func(event string) map[string]any {
		t.Helper()
		return w.do("dag emit '" + event + "'")
	}
	head := `"ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"ada"`
	started := emit(`{"kind":"run_started",` + head + `,"nodes":[{"type":"Message","id":"m-1","role":"user","content":[{"type":"text","text":"\u001b]0;owned\u0007\u202e"}],"created_at":"2026-01-02T03:04:05Z"}]}`)
	expect.Row(t, started, "seq", 1.0, "new", true, "kind", "run_started", "run_id", "r-1")
	id := str(started["event_id"])
	w.no(os.WriteFile(filepath.Join(w.dir, "events.jsonl"), []byte(
		`{"kind":"tool_call",`+head+`,"server":"sh","tool":"exec","call_id":"c-1","args":{"cmd":"ls"},"requested_by":{"event_id":"`+id+`"}}`+"\n\n"+
			`{"kind":"resource_attached",`+head+`,"resource_ref":"vol-1","mode":"ro","mount":"/data"}`+"\n"+
			`{"kind":"policy_activated","ts":"2026-01-02T03:04:05Z","agent_id":"ada","policy_ref":"p-1"}`+"\n"+
			`{"kind":"agent_forked","ts":"2026-01-02T03:04:05Z","agent_id":"ada","from_branch":"main","to_branch":"try","at_event":{"event_id":"`+id+`"}}`+"\n"), 0o600))
	all := w.objects("dag emit @events.jsonl")
	expect.True(t, len(all) == 4 && all[0]["seq"] == 2.0 && all[3]["kind"] == "agent_forked", "emit: %v", all)
	all = w.objects("dag events --run r-1 --page 1")
	expect.True(t, len(all) == 4 && all[0]["event_id"] == id && all[1]["call_id"] == "c-1" && all[3]["total_count"] == 3.0, "events: %v", all)
	w.do("dag events --kind tool_call --task x --correlation y")
	w.text("dag events", "EVENT", "tool_call", "ada", "ls")
	got := w.do("dag show " + id[:10])
	expect.True(t, got["event_id"] == id && len(got["edges"].([]any)) == 3, "show: %v", got)
	w.text("dag show m-1", "Message")
	w.text("dag show "+id, "AGENT_HAS_RUN")
	all = w.objects("dag lineage m-1")
	expect.True(t, len(all) == 1 && all[0]["depth"] == 1.0 && all[0]["event_id"] == id, "lineage: %v", all)
	w.do("dag lineage m-1 --depth 3 --most 9 --down")
	w.text("dag lineage m-1", "EVENT_PRODUCES", "Event:"+id[:10])
	all = w.objects("dag timeline run:r-1")
	expect.True(t, len(all) == 3 && all[0]["event_id"] == id && all[1]["status_of"] == "open", "timeline: %v", all)
	w.text("dag timeline ada", "TS", "KIND")
	w.do("dag timeline session:nobody")
	w.text("dag timeline agent:ada --kind tool_call --page-size 1", "tool_call", "exec")
	code, _, _ := w.fails(2, "dag timeline r-1")
	expect.True(t, code == "INVALID_INPUT", "timeline of nothing: %s", code)
	g := w.do("dag graph " + id[:10] + " --depth 2 --most 9")
	expect.True(t, len(g["nodes"].([]any)) == 5 && len(g["edges"].([]any)) == 4, "graph: %v", g)
	w.text("dag graph Agent:ada --size 120x30", "┌─ run ─", "ada/try")
	w.text("dag graph Agent:ada --ascii", "+- branch ")
	w.text("dag graph Agent:ada --accessible", "leads to branch ada/try (forked from)")
	code, _, _ = w.fails(2, "dag graph Agent:ada --size 10x1")
	expect.True(t, code == "INVALID_INPUT", "graph of no size: %s", code)
	all = w.objects("dag calls --run r-1 --status open")
	expect.True(t, len(all) == 1 && all[0]["call_id"] == "c-1" && all[0]["status"] == "open" && all[0]["tool"] == "exec", "calls: %v", all)
	w.do("dag calls")
	w.text("dag calls", "c-1", "open", "sh")
	all = w.objects("dag resources --at 2026-01-02T03:04:06Z")
	expect.True(t, len(all) == 1 && all[0]["id"] == "vol-1", "resources: %v", all)
	w.do("dag resources")
	w.text("dag resources", "vol-1", "unknown")
	all = w.objects("dag mounts --run r-1")
	expect.True(t, len(all) == 1 && all[0]["mount"] == "/data" && all[0]["mode"] == "ro", "mounts: %v", all)
	w.do("dag mounts --at 1m")
	w.text("dag mounts", "vol-1", "Run:r-1", "/data")
	expect.Row(t, w.do("dag policies"), "policy_id", "p-1", "change", "activated", "active", true)
	w.text("dag policies", "p-1", "activated", "yes")
	expect.Row(t, w.do("dag forks --agent ada"), "agent_id", "ada", "to_branch", "try")
	all = w.objects("dag forks --of ada/try")
	expect.True(t, len(all) == 2, "ancestry: %v", all)
	w.text("dag forks --of ada/try", "FORKED_FROM", "Branch:ada/try")
	w.text("dag forks", "try", "main")
	got = w.do("dag at " + id)
	expect.True(t, got["event_id"] == id && got["run"].(map[string]any)["status"] == "running", "at: %v", got)
	w.text("dag at "+id, "running")
	// Beside these are the runs of the agents so far.
	expect.Row(t, w.do("dag emit --stream @events.jsonl"), "events", 4.0, "new", 0.0)
	exported := w.do("dag export jsonl record.jsonl")
	n, ok := exported["events"].(float64)
	expect.True(t, ok && n >= 5 && exported["format"] == "jsonl", "export: %v", exported)
	code, _, _ = w.fails(1, "dag export jsonl record.jsonl")
	expect.True(t, code == "CONFLICT", "%v", code)
	expect.Row(t, w.do("dag import jsonl record.jsonl"), "events", exported["events"], "new", 0.0)
	w.no(os.WriteFile(filepath.Join(w.dir, "spans.json"), []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"0000000000000001","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001000000000","attributes":[{"key":"gen_ai.tool.name","value":{"stringValue":"weather"}},{"key":"gen_ai.agent.name","value":{"stringValue":"forecaster"}}]}]}]}]}`), 0o600))
	for _, n := range []float64{4, 0} {
		expect.Row(t, w.do("dag import otlp spans.json"), "events", 4.0, "new", n)
	}
	w.text("dag events --run 0af7651916cd43dd8448eb211c80319c", "weather", "run_finished")
	got = w.do("dag compare run:r-1 run:0af7651916cd43dd8448eb211c80319c")
	expect.True(t, got["b"].(map[string]any)["agent_id"] == "forecaster", "compare: %v", got)
	w.no(os.WriteFile(filepath.Join(w.dir, "none.yaml"), []byte("schema: 1\nname: none\nrules:\n  - {id: all, gates: [tool.call], when: \"true\", decision: deny, reason_code: none.all, risk: low}\n"), 0o600))
	got = w.do("dag replay forecaster --policy @none.yaml")
	expect.True(t, got["calls"] == 1.0 && got["changed"] == 1.0 && got["items"].([]any)[0].(map[string]any)["would"] == "deny", "replay: %v", got)
	w.text("dag replay forecaster --policy default --all", "weather", "1 calls", "no decision")
	w.text("dag compare run:r-1 forecaster", "A", "forecaster", "+ weather {}")
	expect.Row(t, w.do("dag import events events.jsonl"), "events", 4.0, "new", 0.0)
	for line, word := range map[string]string{
		"dag import otlp events.jsonl":                 "resourceSpans",
		"dag compare r-1 run:r-1":                      "run:ID",
		"dag compare run:r-1 run:none":                 "run:none",
		"dag compare run:r-1":                          "B is missing",
		"dag replay run:none":                          "run:none",
		"dag replay forecaster --policy nosuch":        "nosuch",
		"dag replay forecaster --policy @no.yaml":      "no.yaml",
		"dag replay forecaster --policy @events.jsonl": "policy",
		"dag import events spans.json":                 "line 1",
		"dag emit {}":                                  "kind",
		"dag emit no":                                  "JSON",
		"dag emit @events.json":                        "events.json",
		"dag emit --stream {}":                         "@FILE or -",
		"dag emit --stream @no.jsonl":                  "no.jsonl",
		"dag events --kind call":                       "tool_call",
		"dag show zz":                                  "zz",
		"dag at 00000000":                              "00000000",
		"dag lineage m-1 --depth 1000":                 "1-100",
		"dag mounts --at noon":                         "noon",
		"dag calls --status fine":                      "open",
		"dag export zip x":                             "car, git, jsonl, sqlite",
		"dag import jsonl nosuch":                      "nosuch",
		"dag import jsonl events.jsonl":                "line 1",
		"dag import sqlite events.jsonl":               "not a database",
		"dag import car events.jsonl":                  "header",
		"dag import git events.jsonl":                  "not a directory",
	} {
		code, _, stderr := w.run(strings.Fields(line)...)
		expect.True(t, code != 0 && strings.Contains(stderr, word), "%s: exit %d: %s", line, code, stderr)
	}
}

func TestTheRecordsWordsAreCompleted(t *testing.T) {
	d := newDeck(t)
	d.line(`dag emit '{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"ada"}'`)
	for line, want := range map[string]string{"dag export ": "sqlite", "dag events --run ": "r-1", "dag events --kind tool_": "tool_call"} {
		found := false
		for _, c := range d.complete(line) {
			found = found || strings.Contains(c, want)
		}
		expect.True(t, found, "%q is not completed with %s", line, want)
	}
}
