package command_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// TestRunIsTheCommandItRuns: what it writes comes on the stream that it was written to,
// a failure is said with its own status, and JSON has the task.
func TestRunIsTheCommandItRuns(t *testing.T) {
	d := newDeck(t)
	code, out, stderr := d.run("run", "--name", "greet", "--", "sh", "-c", "echo one; echo two >&2")
	expect.True(t, code == 0 && out == "one\n" && stderr == "two\n", "exit %d, %q, %q", code, out, stderr)
	code, out, stderr = d.run("run", "--", "sh", "-c", "exit 3")
	expect.True(t, code == 1 && out == "" && strings.Contains(stderr, "exit status 3") && strings.Contains(stderr, "swarmdeck why tk_"), "exit %d, %q, %q", code, out, stderr)
	v := d.object("run --dir / -- pwd")
	expect.Row(t, v, "kind", "exec.run", "status", "succeeded")
	expect.Has(t, d.line("log "+str(v["task_id"])), "/\n", "what it wrote")
}

// TestWhoWaitsIsToldForWhatAndHowToAnswer at once, on every form of output.
func TestWhoWaitsIsToldForWhatAndHowToAnswer(t *testing.T) {
	d := newDeck(t)
	for _, line := range []string{
		"run -- rm -rf x", "-o json run -- rm -rf x",
		`task dispatch --kind exec.run --input '{"argv":["rm","-rf","x"]}' --wait`, `-o json task dispatch --kind exec.run --input '{"argv":["rm","-rf","x"]}' --wait`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		heard := &hears{}
		env := d.env
		env.Stdout, env.Stderr = heard, heard
		done := expect.Later(func() error {
			command.Run(ctx, &env, expect.Of(command.Split(line))(t))
			return nil
		})
		expect.Await(t, line+" says how to answer", func() bool { return strings.Contains(heard.text(), "approval approve ap_") })
		expect.Has(t, heard.text(), "rm -rf x", line)
		d.line("approval deny " + str(d.object("approval list --open")["approval_id"]) + " --reason no")
		expect.No(t, <-done)
		cancel()
	}
}

// hears is what a line that still runs has written.
type hears struct {
	mu  sync.Mutex
	all strings.Builder
}

func (h *hears) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.Write(p)
}

func (h *hears) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// TestWhyEndsAtACauseAndWhatMendsIt for each noun and state.
func TestWhyEndsAtACauseAndWhatMendsIt(t *testing.T) {
	d := newDeck(t)
	d.line("session create --name night")
	d.line("agent create ada --project p -- cat")
	d.until("agent show ada", "status", "idle")
	says := func(id string, want ...string) {
		t.Helper()
		text := d.line("why " + id)
		for _, w := range append(want, "\nnext: swarmdeck ") {
			expect.Has(t, text, w, "why", id)
		}
		expect.True(t, len(d.object("why " + id)["next"].([]any)) > 0, "why %s: nothing is next", id)
	}
	says("ada", "nothing to do", "tell ada TEXT")
	says("night", "not started", "session start se_")
	d.line("budget set tenant --tokens 10")
	says("tenant", "tokens", "budget set tenant")
	d.run("run", "--", "false")
	says("tk_", "exit status 1", "task retry tk_")
	says("tk_8a039_0000000001", "exit status 1")
	asks := d.object(`task dispatch --kind exec.run --input '{"argv":["rm","-rf","x"]}'`)
	says(str(asks["task_id"]), "approval ap_", "approval show ap_")
	says("ap_", "is open: ", "approval approve ap_")
	d.line("approval deny ap_ --reason 'too much'")
	says(str(asks["task_id"]), "is blocked: ", "too much", "task retry tk_")
	says("ap_", "too much", "why tk_")
	d.line("agent pause ada")
	says("ada", "paused", "agent resume ada")
	d.line("agent resume ada")
	d.line("agent stop ada")
	says("ada", "agent start ada")
	d.line("estop on --reason fire")
	says("ada", "fire", "estop off")
	d.line("estop off --reason over")
}

// TestAShortIDIsAsGoodAsAWholeOne where only one begins or ends so.
func TestAShortIDIsAsGoodAsAWholeOne(t *testing.T) {
	d := newDeck(t)
	for range 12 {
		d.line(`task dispatch --kind exec.run --input '{"argv":["true"]}'`)
	}
	for _, id := range []string{"tk_8a039_0000000009", "0000000009", "09", "9"} {
		for _, line := range []string{"task show ", "show ", "why ", "task why "} {
			expect.Has(t, d.line(line+id), "tk_8a039_0000000009", line, id)
		}
	}
	code, message, _ := d.fails(2, "task show 2")
	expect.True(t, code == "INVALID_INPUT" && strings.Contains(message, "tk_8a039_0000000012, tk_8a039_0000000002"), "%s %s", code, message)
	d.fails(2, "task show 99")
	d.line("agent create ada --project p -- cat")
	d.line("agent create bob --project p -- cat")
	expect.Row(t, d.object("agent show ad"), "name", "ada")
	expect.Row(t, d.object("show ob"), "name", "bob")
	d.fails(1, "agent delete ad --yes") // what can't be undone takes whole names
	d.line("agent show ada")
}

// TestALogIsReadFromItsEnd, oldest line first, of agents and tasks alike.
func TestALogIsReadFromItsEnd(t *testing.T) {
	d := newDeck(t)
	id := str(d.object("run -- sh -c 'for i in $(seq 60); do echo line $i; done'")["task_id"])
	for _, line := range []string{"log " + id, "task log " + id} {
		all := d.objects(line)
		expect.True(t, len(all) == 50 && all[0]["message"] == "line 11" && all[49]["message"] == "line 60", "%s: %d lines from %v", line, len(all), all[0])
		expect.Is(t, len(d.objects(line+" --lines 2")), 2, line)
		expect.Is(t, len(d.objects(line+" --lines 0")), 60, line)
	}
	d.line(`agent create ada --project p -- sh -c 'echo one; echo two'`)
	d.line("agent assign ada go --wait")
	for _, line := range []string{"log ada", "agent log ada"} {
		out := d.line(line)
		expect.True(t, strings.Index(out, "one") < strings.Index(out, "two") && strings.Contains(out, "go"), "%s: %s", line, out)
	}
	expect.Has(t, d.line("agent log ada --match two"), "two", "what the filter lets through")
}

// TestStatusIsOnePage of what needs a person, what failed and why, who works and what it cost.
func TestStatusIsOnePage(t *testing.T) {
	d := newDeck(t)
	v := d.object("status")
	for _, member := range []string{"needs", "failed", "working", "idle", "cost"} {
		expect.True(t, v[member] != nil, "status has no %s: %v", member, v)
	}
	expect.Has(t, d.line("status"), "Needs you: nothing", "an empty tenant")
	d.run("run", "--", "false")
	d.line(`task dispatch --kind exec.run --input '{"argv":["rm","-rf","x"]}'`)
	d.line("agent create ada --project p -- cat")
	d.until("agent show ada", "status", "idle")
	v = d.object("status")
	need, failed := v["needs"].([]any)[0].(map[string]any), v["failed"].([]any)[0].(map[string]any)
	expect.True(t, need["kind"] == "approval" && need["left_s"] == nil && strings.HasPrefix(str(need["next"].([]any)[0]), "approval show ap_"), "needs: %v", need)
	expect.True(t, strings.Contains(str(failed["why"]), "exit status 1") && v["idle"] == 1.0, "failed: %v", v)
	text := d.line("status")
	for _, want := range []string{"Needs you: 1", "approval show ap_", "Failed: 1", "exit status 1", "Idle: 1"} {
		expect.Has(t, text, want, "status")
	}
	d.env.Clock = later(2 * time.Hour)
	expect.Has(t, d.line("status"), "(2h)", "since when nobody is here")
}

// later is the time after so long.
type later time.Duration

func (l later) Now() time.Time { return time.Now().Add(time.Duration(l)) }

// TestTellIsATaskForWhoIsIdle and waits for who works.
func TestTellIsATaskForWhoIsIdle(t *testing.T) {
	d := newDeck(t)
	d.line(`agent create ada --project p -- sh -c 'echo done'`)
	d.until("agent show ada", "status", "idle")
	expect.Has(t, d.line("tell ada 'say it'"), "agent ada: it is its task (tk_", "what is told of a task by words")
	d.until("agent history ada", "status", "succeeded")
}

// TestATenantIsUnseenUntilThereAreTwo, and after that is the first one until another is said.
func TestATenantIsUnseenUntilThereAreTwo(t *testing.T) {
	d := newDeck(t)
	d.line("task list")
	d.line("tenant create t_acme")
	expect.Row(t, d.object("status"), "tenant_id", "t_default")
	d.line("tenant use t_acme")
	expect.Row(t, d.object("status"), "tenant_id", "t_acme")
	expect.Row(t, d.object("--tenant t_default status"), "tenant_id", "t_default")
	d.fails(1, "tenant use t_nosuch")
	d.env.Caller.Name = "bob"
	expect.Row(t, d.object("status"), "tenant_id", "t_default")
	d.no(os.WriteFile(d.data+".run/current", []byte("{"), 0o600))
	d.env.Caller.Name = "alice"
	expect.Row(t, d.object("status"), "tenant_id", "t_default")
}

// TestFirstCommandsAtOnceShareTheFirstTenant, which one of them made.
func TestFirstCommandsAtOnceShareTheFirstTenant(t *testing.T) {
	d := newDeck(t)
	done := make(chan string)
	for range 8 {
		go func() {
			_, _, stderr := d.run("approval", "list")
			done <- stderr
		}()
	}
	for range 8 {
		expect.Is(t, <-done, "", "standard error")
	}
	expect.Is(t, len(d.objects("audit list --kind tenant.created")), 1, "tenants made")
}

// TestWhichTenantIsAskedWhereNoneIsTheFirst.
func TestWhichTenantIsAskedWhereNoneIsTheFirst(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_one")
	d.line("tenant create t_two")
	_, message, details := d.fails(2, "task list")
	expect.True(t, strings.Contains(message, "t_one, t_two") && strings.Contains(message, "tenant use") && details["field"] == "tenant", "%s %v", message, details)
}

// TestAListIsNarrowedToSeveralStates, newest first whichever they have.
func TestAListIsNarrowedToSeveralStates(t *testing.T) {
	d := newDeck(t)
	for _, line := range []string{"run -- true", "run -- false", "run -- true"} {
		d.run(expect.Of(command.Split(line))(t)...)
	}
	d.line("session create --name night")
	d.line(`task dispatch --session night --kind exec.run --input '{"argv":["true"]}'`)
	ids := func(line string) (all []string) {
		for _, v := range d.objects(line) {
			all = append(all, str(v["task_id"])[len("tk_8a039_000000000"):])
		}
		return all
	}
	expect.Is(t, strings.Join(ids("task list --status failed,succeeded"), ""), "321", "of both")
	expect.Is(t, strings.Join(ids("task list --status failed,queued"), ""), "42", "of others")
	expect.Is(t, strings.Join(ids("task list --status failed,succeeded,queued --page-size 2"), ""), "43", "the first page")
	last := d.objects("task list --status failed,succeeded,queued --page-size 2 --page 2")
	expect.True(t, str(last[0]["task_id"]) == "tk_8a039_0000000002" && last[2]["total_count"] == 4.0, "the second page: %v", last)
	d.fails(2, "task list --status failed,nosuch")
	for _, name := range []string{"ada", "bob"} {
		d.line("agent create " + name + " --project p -- cat")
		expect.Await(t, name, func() bool { code, _, _ := d.run("agent", "assign", name, "wait"); return code == 0 })
	}
	expect.Is(t, strings.Join(ids("task list --agent ada,bob"), ""), "65", "of two agents")
	expect.Is(t, len(d.objects("session list --status created,paused")), 1, "sessions")
}

// TestAStreamOfEventsMayBeAnyLength, by standard input too.
func TestAStreamOfEventsMayBeAnyLength(t *testing.T) {
	d := newDeck(t)
	var in strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&in, `{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r-%d","agent_id":"ada","reason":"user","attributes":{"pad":"%s"}}`+"\n", i, strings.Repeat("x", 400))
	}
	d.env.Stdin = strings.NewReader(in.String())
	code, _, stderr := d.run("dag", "emit", "--stream", "-")
	expect.True(t, in.Len() > 1<<20 && !strings.Contains(stderr, "larger than"), "exit %d: %s", code, stderr)
}

// TestARoleRestrictsNothing, which is said where it sounds as if it did.
func TestARoleRestrictsNothing(t *testing.T) {
	d := newDeck(t)
	_, _, stderr := d.run("agent", "create", "ada", "--project", "p", "--role", "reader", "--", "cat")
	expect.Has(t, stderr, "the role reader restricts nothing, the profile does: worker", "a role that is called as a profile")
	_, _, stderr = d.run("agent", "create", "bob", "--project", "p", "--role", "reader", "--profile", "reader", "--", "cat")
	expect.True(t, !strings.Contains(stderr, "restricts"), "a reader of both: %s", stderr)
}
