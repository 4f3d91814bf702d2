package coder

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// overheard is what a witness hears that no prompt of ours asked for.
func (w *witness) overheard() func() string {
	w.Handle.(fleet.Overheard).Overhear(func(ctx context.Context, e fleet.Event) error {
		if e.Type == "result" {
			if len(e.Said) == 0 || e.Turn == "" {
				return fmt.Errorf("it ends a turn %q without an answer", e.Turn)
			}
			return nil
		}
		_, err := w.emit(ctx, e)
		return err
	})
	return w.said
}

// elsewhere gives the agent a message as Coder's own page does.
func (p *played) elsewhere(t *testing.T, text string) {
	t.Helper()
	body := core.MustEncode(map[string]string{"type": "user", "content": text})
	resp := expect.Of(http.Post(p.srv.URL+"/@alice/bob.main/apps/ccw/message", "application/json", bytes.NewReader(body)))(t)
	resp.Body.Close()
	expect.Must(t, resp.StatusCode == http.StatusOK, "the agent does not take it: %s", resp.Status)
}

// hears waits until exactly this was said.
func hears(t *testing.T, said func() string, want string) {
	t.Helper()
	expect.Await(t, "said", func() bool { return said() == want })
}

// keptBy opens an agent of a played deployment, again and again with the same state.
func (p *played) keptBy(t *testing.T, state string, s settings) *witness {
	s.URL = p.srv.URL
	return openAgent(t, newRuntime(t, Options{State: state}), fleet.Agent{
		Name: "bob", TenantID: "t_test", Project: "p", Role: "r", CreatedAt: time.Unix(1, 0), Options: core.MustEncode(s),
	})
}

func TestWhatSomebodyElseGivesTheAgentIsOverheard(t *testing.T) {
	p := newPlayed(t)
	state := t.TempDir()
	w := p.keptBy(t, state, settings{Adopt: true})
	said := w.overheard()
	w.await(fleet.Idle, "")
	p.elsewhere(t, "say one\nhang")
	w.await(fleet.Busy, "not given to it here")
	hears(t, said, "prompt say one\nhang|message one")
	_, err := w.Prompt(context.Background(), w.prompt("say no"))
	expect.True(t, core.AsError(err).Details["error"] == "AgentBusyError", "a task beside it: %v", err)
	// The next engine goes on where this one was, and repeats nothing.
	expect.No(t, w.Close())
	w = p.keptBy(t, state, settings{Adopt: true})
	said = w.overheard()
	w.await(fleet.Busy, "not given to it here")
	p.add("agent", "and two")
	p.actor.mu.Lock()
	close(p.cancel)
	p.cancel = nil
	p.actor.mu.Unlock()
	w.await(fleet.Idle, "")
	expect.Await(t, "both messages", func() bool { return strings.Contains(said(), "message and two") })
	got := said()
	expect.True(t, !strings.Contains(got, "prompt"), "said %q, want nothing twice", got)
	out, err := w.Prompt(context.Background(), w.prompt("say three"))
	expect.True(t, err == nil && out.Status == task.Succeeded, "%+v %v", out, err)
	expect.No(t, w.Close())
	w = p.keptBy(t, state, settings{Adopt: true})
	said = w.overheard()
	w.await(fleet.Idle, "")
	p.elsewhere(t, "say four")
	hears(t, said, "prompt say four|message four")
}

func TestAnAgentThatIsLeftAloneIsNotOverheard(t *testing.T) {
	p := newPlayed(t)
	w := p.keptBy(t, t.TempDir(), settings{Adopt: true, LeaveAlone: true})
	said := w.overheard()
	w.await(fleet.Idle, "")
	p.elsewhere(t, "say one")
	p.comesTo(t, "stable")
	out, err := w.Prompt(context.Background(), w.prompt("say two"))
	expect.True(t, err == nil && out.Status == task.Succeeded, "%+v %v", out, err)
	expect.Is(t, said(), "message two", "said")
}

// TestAnEngineThatDiesBeforeItKeepsAResultSendsNothingTwice has the same attempt come
// again after the agent is done with it, as it does when an engine dies in between.
func TestAnEngineThatDiesBeforeItKeepsAResultSendsNothingTwice(t *testing.T) {
	p := newPlayed(t)
	state := t.TempDir()
	prompt := func(attempt int) string {
		w := p.keptBy(t, state, settings{Adopt: true})
		w.await(fleet.Idle, "")
		in := w.prompt("say it")
		in.Attempt = attempt
		out, err := w.Prompt(context.Background(), in)
		expect.Must(t, err == nil && out.Status == task.Succeeded, "%+v %v", out, err)
		expect.No(t, w.Close())
		return string(out.Output)
	}
	for attempt, want := range []int{1, 2} { // prompts sent so far: another attempt asks again
		for range 2 {
			if out := prompt(attempt); out != `{"text":"it"}` || p.users() != want {
				t.Errorf("attempt %d: %s, %d prompts sent, want %d", attempt, out, p.users(), want)
			}
		}
	}
}
