package formats_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// tamper changes an export.
type tamper struct {
	name   string
	format string
	do     func(t *testing.T, path string)
	names  naming
}

// naming is which event an error names.
type naming byte

const (
	it     naming = iota // the one that was changed
	before               // the last one that is sound, or another near it: the one that it is about is not there
	none                 // nothing can be read at all
)

func edit(from, to string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		data := expect.Of(os.ReadFile(path))(t)
		expect.Must(t, bytes.Contains(data, []byte(from)), "%q is not in it", from)
		expect.No(t, os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o600))
	}
}

func sql(line string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if _, err := exec.LookPath("sqlite3"); err != nil {
			t.Skip("sqlite3 is not installed")
		}
		out, err := exec.Command("sqlite3", path, line).CombinedOutput()
		expect.Must(t, err == nil, "%v: %s", err, out)
	}
}

func dropLine(n int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		data := expect.Of(os.ReadFile(path))(t)
		lines := strings.SplitAfter(string(data), "\n")
		expect.No(t, os.WriteFile(path, []byte(strings.Join(slices.Delete(lines, n, n+1), "")), 0o600))
	}
}

// inGit changes a file of a branch's newest commit, and commits that.
func inGit(branch, script string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", "git checkout -q "+branch+"; "+script+"; git add -A; git -c user.name=x -c user.email=x commit -qm x")
		cmd.Dir = path
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "%v: %s", err, out)
	}
}

func TestATamperedImportIsRefused(t *testing.T) {
	r := newRig(t)
	from := r.tenant()
	var last dag.Event
	for i, line := range []string{
		`{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a","nodes":[{"type":"Message","id":"m","role":"user","content":[],"created_at":"2026-01-02T03:04:05Z"}]}`,
		`{"kind":"mcp.resource_updated","ts":"2026-01-02T03:04:06Z","run_id":"r","agent_id":"a","server":"files","uri":"u://SECRET"}`,
		`{"kind":"run_finished","ts":"2026-01-02T03:04:07Z","run_id":"r","agent_id":"a"}`,
	} {
		e := expect.Of(dag.Parse([]byte(line)))(r.t)
		expect.Of(r.Emit(t.Context(), from, e))(r.t)
		if i == 1 {
			last = e
		}
	}
	for _, c := range []tamper{
		{"value", "jsonl", edit(`"uri":"u://SECRET"}`, `"uri":"u://PUBLIC"}`), it},
		{"edge", "jsonl", edit(`"attrs":{"uri":"u://SECRET"}`, `"attrs":{"uri":"u://PUBLIC"}`), it},
		{"edge type", "jsonl", edit(`"type":"MCP_RESOURCE_UPDATED"`, `"type":"EVENT_CONSUMES"`), it},
		{"seq", "jsonl", edit(`"pos":2,"seq":2`, `"pos":2,"seq":3`), it},
		{"missing", "jsonl", dropLine(1), before},
		{"tail", "jsonl", dropLine(2), before},
		{"end", "jsonl", dropLine(3), before},
		{"order", "jsonl", edit(`"pos":2`, `"pos":1`), it},
		{"garbage", "jsonl", edit(`{"pos":2`, `{"pos":two`), before},

		{"value", "sqlite", sql(`UPDATE events SET event = replace(event, 'SECRET', 'PUBLIC') WHERE pos = 2`), it},
		{"column", "sqlite", sql(`UPDATE events SET agent_id = 'b' WHERE pos = 2`), it},
		{"column type", "sqlite", sql(`UPDATE events SET trace_id = x'00' WHERE pos = 2`), it},
		{"edge", "sqlite", sql(`UPDATE edges SET uri = 'u://PUBLIC' WHERE type = 'MCP_RESOURCE_UPDATED'`), it},
		{"no edge", "sqlite", sql(`DELETE FROM edges WHERE type = 'MCP_RESOURCE_UPDATED'`), it},
		{"node", "sqlite", sql(`UPDATE nodes SET node = replace(node, 'user', 'system')`), before},
		{"no node", "sqlite", sql(`DELETE FROM nodes`), before},
		{"stray edge", "sqlite", sql(`INSERT INTO edges SELECT 99, i, type, from_type, from_id, to_type, to_id, seq, list, uri, mount, mode, valid_from, valid_to FROM edges LIMIT 1`), before},
		{"missing", "sqlite", sql(`DELETE FROM events WHERE pos = 3; DELETE FROM edges WHERE pos = 3`), before},
		{"no table", "sqlite", sql(`DROP TABLE manifest`), none},
		{"a view", "sqlite", sql(`ALTER TABLE events RENAME TO e; CREATE VIEW events AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM x) SELECT * FROM e, x`), none},

		{"value", "car", edit(`"uri":"u://SECRET"}`, `"uri":"u://PUBLIC"}`), it},
		{"edge", "car", edit(`"attrs":{"uri":"u://SECRET"}`, `"attrs":{"uri":"u://PUBLIC"}`), before},
		{"event", "car", edit(`"server":"files","ts"`, `"server":"filez","ts"`), it},

		{"value", "git", inGit("agents/a", `sed -i 's#"uri":"u://SECRET"}#"uri":"u://PUBLIC"}#' segments/run-r/*.jsonl`), it},
		{"missing", "git", inGit("agents/a", `git rm -q -r segments; touch x`), none},
		{"manifest", "git", inGit("record", `sed -i 's/"events":3/"events":2/' manifest.json`), before},
	} {
		t.Run(c.format+" "+c.name, func(t *testing.T) {
			r := *r
			r.t = t
			dest := filepath.Join(t.TempDir(), "out")
			_, err := r.Export(t.Context(), from.Tenant, c.format, dest)
			r.no(err)
			c.do(t, dest)
			to := core.Caller{Tenant: "t_" + strings.ReplaceAll(c.format+"-"+c.name, " ", "-"), Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
			r.no(r.db.CreateTenant(t.Context(), to.Tenant))
			_, err = r.Import(t.Context(), to, c.format, dest)
			expect.Must(t, core.AsError(err).Code == core.InvalidInput, "%v", err)
			switch id := regexp.MustCompile(`event ([0-9a-f]{64})|before that is ([0-9a-f]{64})`).FindString(err.Error()); {
			case c.names == it && !strings.Contains(id, last.EventID), c.names == before && id == "":
				t.Errorf("the event %s is not named: %v", last.EventID, err)
			}
			expect.Is(t, expect.Of(r.Figures(t.Context(), to.Tenant))(t).Events, 0, "events were taken in")
		})
	}
}
