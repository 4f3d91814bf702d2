package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestPagesAreTrailedAndFiltered(t *testing.T) {
	d := newDeck(t)
	for range 5 {
		d.line("session create")
	}
	all := d.objects("session list --page 2 --page-size 2")
	want := map[string]any{"page": 2.0, "page_size": 2.0, "total_count": 5.0, "has_next_page": true, "has_previous_page": true}
	expect.Must(t, len(all) == 3, "%d lines, want two records and the page's place", len(all))
	for k, v := range want {
		expect.Is(t, all[2][k], v, k, "is")
	}
	all = d.objects("session list --page-size 2")
	expect.True(t, len(all) == 2 && all[0]["session_id"] != nil, "without --page there is no trailer: %v", all)
	all = d.objects("session list --page 9")
	expect.True(t, len(all) == 1 && all[0]["has_next_page"] == false && all[0]["total_count"] == 5.0, "past the end: %v", all)
	expect.Has(t, d.line("session list --page-size 2"), "page 1 of 3, 5 in all", "a table that is cut says so")
	out := d.line("session list")
	expect.True(t, !strings.Contains(out, "page"), "a whole table needs no place:\n%s", out)
	// The same for lists that the engine hands over whole.
	for _, name := range []string{"t_aa", "t_ab", "t_b1"} {
		d.line("tenant create " + name)
	}
	all = d.objects("tenant list --match _A --page 1 --page-size 1")
	expect.True(t, len(all) == 2 && all[0]["tenant_id"] == "t_aa" && all[1]["total_count"] == 2.0, "%v", all)
	all = d.objects("tenant list --until 1h")
	expect.True(t, len(all) == 0, "until an hour ago: %v", all)
	all = d.objects("tenant list --since 1h")
	expect.True(t, len(all) == 4, "since an hour ago: %v", all)
}

func TestTablesAreAlignedByCells(t *testing.T) {
	d := newDeck(t)
	d.line(`task dispatch --kind exec.run --input '{"argv":["echo","日本語"]}' --wait`)
	d.line(`task dispatch --kind exec.run --input '{"argv":["echo","x"]}' --priority 7 --wait`)
	lines := strings.Split(strings.TrimRight(d.line("task list"), "\n"), "\n")
	expect.Must(t, len(lines) == 3, "%q", lines)
	at := strings.Index(lines[0], "STATUS")
	for _, line := range lines[1:] {
		expect.True(t, strings.HasPrefix(line[at:], "succeeded"), "the column is not at %d: %q", at, line)
	}
	right := strings.Index(lines[0], "PRI") + 3
	expect.True(t, lines[1][right-1] == '7' && lines[2][right-2:right] == "50", "numbers are not to the right:\n%s", strings.Join(lines, "\n"))
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
	expect.Is(t, v.Input.Argv[2], hostile, "the value has changed")
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
