package keeper

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/expect"
)

func TestWhatModelsAreToldIsMasked(t *testing.T) {
	mask := secret.NewMask(map[string]string{"S": "geheim"})
	call := &fleet.ModelCall{Name: "m", Params: core.Raw(`{"a":"\u0067eheim"}`), Messages: []dag.Spoken{{Role: "user", Content: []dag.ContentPart{
		{Text: "it is geheim", Input: core.Raw(`{"x":"geheim"}`), Output: core.Raw(`"geheim"`)},
	}}}}
	var heard []*fleet.ModelCall
	hear := Masked(func() *secret.Mask { return mask }, func(e fleet.Event) func(fleet.Event) {
		heard = append(heard, e.Model)
		return func(e fleet.Event) { heard = append(heard, e.Model) }
	})
	hear(fleet.Event{Model: call})(fleet.Event{Model: call})
	for _, c := range heard {
		p := c.Messages[0].Content[0]
		if string(c.Params) != `{"a":"[secret S]"}` || p.Text != "it is [secret S]" || string(p.Input) != `{"x":"[secret S]"}` || string(p.Output) != `"[secret S]"` {
			t.Errorf("%+v", c)
		}
	}
	expect.True(t, call.Messages[0].Content[0].Text == "it is geheim" && len(heard) == 2, "what was said was changed")
}
