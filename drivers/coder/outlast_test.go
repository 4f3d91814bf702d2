package coder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// users counts the prompts that the agent was given.
func (p *played) users() (n int) {
	p.actor.mu.Lock()
	defer p.actor.mu.Unlock()
	for _, m := range p.messages {
		if m.Role == "user" {
			n++
		}
	}
	return n
}

// TestWorkOutlivesItsEngine ends the engine's part at random instants, before a prompt is
// sent, while it is, and while the agent works: each is sent once, nothing is
// interrupted, and the next part has the answer.
func TestWorkOutlivesItsEngine(t *testing.T) {
	p := newPlayed(t)
	state, born := t.TempDir(), time.Now()
	open := func() (*witness, *Runtime) {
		r := newRuntime(t, Options{State: state})
		w := openAgent(t, r, fleet.Agent{
			Name: "bob", TenantID: "t_test", Project: "p", Role: "r", CreatedAt: born, Options: core.MustEncode(settings{URL: p.srv.URL, Adopt: true}),
		})
		return w, r
	}
	random := rand.New(rand.NewPCG(1, 2))
	given := make(chan bool, 1)
	p.begun = func(string) { given <- true }
	finish := func() { // the work
		expect.Await(t, "the work", func() bool {
			p.actor.mu.Lock()
			defer p.actor.mu.Unlock()
			if p.cancel == nil {
				return false
			}
			close(p.cancel)
			p.cancel = nil
			return true
		})
	}
	const rounds = 50
	ends := 0
	for n := range rounds {
		ask := func(w *witness) fleet.Prompt {
			in := w.prompt(fmt.Sprintf("say answer %d", n), "hang")
			in.TaskID = fmt.Sprintf("tk_00000_%010d", n+1)
			return in
		}
		var out task.Outcome
		begun, done := false, false
		for ended, tries := false, 0; !ended; tries++ {
			w, r := open()
			w.await(fleet.Idle, "") // it takes what is under way for somebody's own until then
			over := make(chan struct{})
			go func() {
				defer close(over)
				got, err := w.Prompt(context.Background(), ask(w))
				if ended = err == nil && got.Status == task.Succeeded; ended {
					out = got
				}
			}()
			// The engine ends before its agent is given the work or while that is sent, during
			// the work, or after it; what it left is over before the next is there, or soon after.
			end := random.IntN(3)
			if tries > 1 {
				end = 2
			}
			if end > 0 && !begun {
				begun = <-given
			}
			if end == 2 {
				if !done {
					done = true
					finish()
				}
				<-over
			}
			expect.No(t, w.Close())
			<-over
			_ = r.Close()
			select {
			case begun = <-given:
			default:
			}
			if begun && !done {
				if done = true; random.IntN(2) == 0 {
					finish()
				} else {
					go finish()
				}
			}
			ends++
		}
		expect.True(t, string(out.Output) == fmt.Sprintf(`{"text":"answer %d"}`, n), "round %d: %s", n, out.Output)
	}
	expect.Is(t, p.users(), rounds)
	expect.True(t, ends >= rounds*3/2, "%d ends in %d rounds", ends, rounds)
	p.actor.mu.Lock()
	defer p.actor.mu.Unlock()
	expect.Is(t, p.keys, "", "it was interrupted by")
}
