package acp

import (
	"context"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// offered is what the agent was last reported to offer.
func (s *stand) offered() (o fleet.Offers) {
	if h := s.now(); h.Offers != nil {
		o = *h.Offers
	}
	return o
}

func TestWhatAnAgentOffersIsReportedAndSet(t *testing.T) {
	for name, config := range map[string]bool{"by methods of their own": false, "as settings of the session": true} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, Options{})
			a := fakeAgent(t, traits{Modes: []string{"ask", "auto"}, Models: []string{"small", "large"}, Config: config}, settings{Mode: "ask"})
			s := open(t, r, a)
			s.ends(task.Succeeded, "", "settings")
			expect.Is(t, strings.Join(s.texts("message"), ""), "mode ask model ", "at first")
			o := s.offered()
			if fleet.Allowed(o.Modes) == "" || len(o.Modes) != 2 || o.Modes[0].ID != "ask" || o.Mode != "ask" || len(o.Models) != 2 || o.Models[1].ID != "large" || o.Model != "large" {
				t.Errorf("offers %+v", o)
			}
			ctx, c := context.Background(), s.handle.(fleet.Chooser)
			expect.No(t, c.Choose(ctx, fleet.SetModel, "small"))
			expect.No(t, c.Choose(ctx, fleet.SetMode, "auto"))
			o = s.offered()
			expect.True(t, o.Mode == "auto" && o.Model == "small", "then %+v", o)
			s.forget()
			s.ends(task.Succeeded, "", "settings")
			expect.Is(t, strings.Join(s.texts("message"), ""), "mode auto model small", "then")
			s.ends(task.Failed, "agent_killed", "crash")
			s.forget()
			s.ends(task.Succeeded, "", "settings")
			expect.Is(t, strings.Join(s.texts("message"), ""), "mode auto model small", "in a new session")
			got := s.of("mode")
			expect.True(t, len(got) == 0, "a change that was asked for is reported: %+v", got)
			expect.Says(t, c.Choose(ctx, fleet.SetModel, "huge"), "one of: small (", "a model that it has not")
		})
	}
}

func TestAModeIsSetWhileAnAgentWorks(t *testing.T) {
	s, _ := newStand(t, traits{Modes: []string{"ask", "auto"}}, settings{Mode: "ask"})
	done := s.start("tool execute {}", "settings")
	expect.Await(t, "it asks", func() bool { return len(s.of("tool_request")) == 1 })
	expect.No(t, s.handle.(fleet.Chooser).Choose(context.Background(), fleet.SetMode, "auto"))
	s.release("approve")
	s.wait(done)
	expect.Has(t, strings.Join(s.texts("message"), "|"), "mode auto", "it said")
}

func TestARealAgentsModelsAndModesAreOffered(t *testing.T) {
	m := serveModel(t)
	a := opencode(t, m)
	s := open(t, newRuntime(t, Options{Local: keeper.Local{Models: recorder(t)}, Patience: 3 * time.Minute}), a)
	s.always("approve")
	s.ends(task.Succeeded, "", "hello")
	o := s.offered()
	t.Logf("modes %s, models %s", fleet.Allowed(o.Modes), fleet.Allowed(o.Models))
	expect.Must(t, o.Mode == "build" && len(o.Modes) >= 2 && len(o.Models) != 0 && o.Model != "", "offers %+v", o)
	c := s.handle.(fleet.Chooser)
	expect.No(t, c.Choose(context.Background(), fleet.SetMode, "plan"))
	expect.No(t, c.Choose(context.Background(), fleet.SetModel, o.Model))
	s.ends(task.Succeeded, "", "hello")
	now := s.offered()
	expect.True(t, now.Mode == "plan" && now.Model == o.Model, "then %+v", now)
	err := c.Choose(context.Background(), fleet.SetMode, "nope")
	expect.True(t, core.AsError(err).Code == core.InvalidInput && strings.Contains(err.Error(), "plan"), "a mode that it has not: %v", err)
}
