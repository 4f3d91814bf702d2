package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

func TestPagesAreTrailedAndFiltered(t *testing.T) {
	d := newDeck(t)
	for range 5 {
		d.line("session create")
	}
	all := d.objects("session list --page 2 --page-size 2")
	want := map[string]any{"page": 2.0, "page_size": 2.0, "total_count": 5.0, "has_next_page": true, "has_previous_page": true}
	if len(all) != 3 {
		t.Fatalf("%d lines, want two records and the page's place", len(all))
	}
	for k, v := range want {
		if all[2][k] != v {
			t.Errorf("%s is %v, want %v", k, all[2][k], v)
		}
	}
	if all := d.objects("session list --page-size 2"); len(all) != 2 || all[0]["session_id"] == nil {
		t.Errorf("without --page there is no trailer: %v", all)
	}
	if all := d.objects("session list --page 9"); len(all) != 1 || all[0]["has_next_page"] != false || all[0]["total_count"] != 5.0 {
		t.Errorf("past the end: %v", all)
	}
	if out := d.line("session list --page-size 2"); !strings.Contains(out, "page 1 of 3, 5 in all") {
		t.Errorf("a table that is cut says so:\n%s", out)
	}
	if out := d.line("session list"); strings.Contains(out, "page") {
		t.Errorf("a whole table needs no place:\n%s", out)
	}
	// The same for lists that the engine hands over whole.
	for _, name := range []string{"t_aa", "t_ab", "t_b1"} {
		d.line("tenant create " + name)
	}
	if all := d.objects("tenant list --match _A --page 1 --page-size 1"); len(all) != 2 || all[0]["tenant_id"] != "t_aa" || all[1]["total_count"] != 2.0 {
		t.Errorf("%v", all)
	}
	if all := d.objects("tenant list --until 1h"); len(all) != 0 {
		t.Errorf("until an hour ago: %v", all)
	}
	if all := d.objects("tenant list --since 1h"); len(all) != 4 {
		t.Errorf("since an hour ago: %v", all)
	}
}

func TestTablesAreAlignedByCells(t *testing.T) {
	d := newDeck(t)
	d.line(`task dispatch --kind exec.run --input '{"argv":["echo","日本語"]}' --wait`)
	d.line(`task dispatch --kind exec.run --input '{"argv":["echo","x"]}' --priority 7 --wait`)
	lines := strings.Split(strings.TrimRight(d.line("task list"), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	at := strings.Index(lines[0], "STATUS")
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line[at:], "succeeded") {
			t.Errorf("the column is not at %d: %q", at, line)
		}
	}
	if right := strings.Index(lines[0], "PRI") + 3; lines[1][right-1] != '7' || lines[2][right-2:right] != "50" {
		t.Errorf("numbers are not to the right:\n%s", strings.Join(lines, "\n"))
	}
}

// hostile is what an agent may say to take over a terminal.
const hostile = "a\x1b[31mred\x1b]52;c;aGk=\a\u202eevil\u2066\u200bzero\u0085next\u00adsoft\ufeffbom\r\nline\ttab"

func TestNoOutputCarriesControlCharacters(t *testing.T) {
	d := newDeck(t)
	d.line("task list")
	by := d.env.Caller
	by.Tenant = "t_default"
	tk := str(d.object(`task dispatch --kind exec.run --input ` + core.Quote(string(core.MustEncode(map[string]any{"argv": []string{"echo", hostile}}))) + ` --wait`)["task_id"])
	d.no(d.eng.Tasks.AppendLog(t.Context(), by, tk, []task.LogLine{{Level: "INFO", Message: hostile, Source: hostile}}))
	session := str(d.object("session create")["session_id"])
	d.line("session start " + session)
	d.line("session pause " + session + " --reason " + core.Quote(hostile))
	d.line("agent create liar --project p -- sh -c " + core.Quote("printf '%s\\n' "+core.Quote(hostile)))
	d.until("agent show liar", "status", "idle")
	d.line("agent assign liar " + core.Quote(hostile) + " --wait")
	for _, line := range []string{
		"task list", "task show " + tk, "task log " + tk, "result show " + tk, "result list", "session list", "session show " + session,
		"agent list", "agent show liar", "agent log liar --page-size 20", "agent history liar", "audit list --page-size 100", "decision list",
	} {
		for _, form := range []string{"text", "wide", "json"} {
			clean(t, d.line("-o "+form+" "+line))
		}
	}
}

func TestJSONKeepsItsValue(t *testing.T) {
	d := newDeck(t)
	task := str(d.object(`task dispatch --kind exec.run --input ` + core.Quote(string(core.MustEncode(map[string]any{"argv": []string{"printf", "%s", hostile}}))) + ` --wait`)["task_id"])
	out := d.line("-o json task show " + task)
	clean(t, out)
	var v struct{ Input struct{ Argv []string } }
	d.no(json.Unmarshal([]byte(out), &v))
	if v.Input.Argv[2] != hostile {
		t.Errorf("the value has changed: %q", v.Input.Argv[2])
	}
}

func clean(t *testing.T, out string) {
	t.Helper()
	for i, r := range strings.ReplaceAll(out, "\n", "") {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%U at %d of %q", r, i, out)
			return
		}
	}
}
