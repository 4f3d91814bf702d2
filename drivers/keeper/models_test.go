package keeper

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestAModelIsToldOfACallOnlyAfterItsEnd(t *testing.T) {
	results := &fleet.ModelCall{Messages: []dag.Spoken{{Role: "user", Content: []dag.ContentPart{{Type: "tool_result"}}}}}
	for name, c := range map[string]struct {
		asked *fleet.ModelCall
		late  time.Duration // that the result is heard of
		want  time.Duration // until the request is
		order []string
	}{
		"a result on its way":   {results, 80 * time.Millisecond, 80 * time.Millisecond, []string{"tool_call", "tool_result", "model_request"}},
		"a result never heard":  {results, time.Hour, resultPatience, []string{"tool_call", "model_request"}},
		"a request without one": {&fleet.ModelCall{Messages: []dag.Spoken{{Role: "user"}}}, time.Hour, 0, []string{"tool_call", "model_request"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				settled := make(chan struct{})
				turn := NewTurn(t.Context(), fleet.Prompt{Emit: func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
					if told = append(told, e.Type); e.Type == "tool_result" {
						close(settled)
					}
					return fleet.ToolAnswer{}, nil
				}, Settle: func(ctx context.Context) error {
					select {
					case <-settled:
					case <-ctx.Done():
					}
					return ctx.Err()
				}, Beat: func() {}})
				listen := Overhear(func() *Turn { return turn }, nil)
				turn.Speak(func() { turn.Pass(fleet.Event{Type: "tool_call", CallID: "1"}) })
				end := time.AfterFunc(c.late, func() {
					turn.Speak(func() { turn.Pass(fleet.Event{Type: "tool_result", CallID: "1"}) })
				})
				defer end.Stop()
				for i, want := range []time.Duration{c.want, 0} { // in vain it waits once
					began := time.Now()
					listen(fleet.Event{Type: "model_request", Model: c.asked})
					took := time.Since(began)
					expect.True(t, took == want, "request %d took %s, want %s", i+1, took, want)
				}
				want := append(c.order, "model_request")
				expect.True(t, slices.Equal(told, want), "%q, want %q", told, want)
				turn.Close()
			})
		})
	}
}
