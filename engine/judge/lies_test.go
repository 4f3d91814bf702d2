package judge_test

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func TestAMergeOfWhatRunsByLyingThereIsGraver(t *testing.T) {
	f := setup(t)
	action := judge.Action{Kind: "tree.merge", Args: core.Raw(`{"agent":"ada","into":"main"}`)}
	for lies, want := range map[string]struct {
		risk     judge.Risk
		headline string
	}{
		"": {judge.Medium, "take ada's work over into main"},
		".envrc runs on your machine when you enter it": {judge.High, "take ada's work over into main, of which .envrc runs on your machine when you enter it"},
		"a runs on your machine\nb too\nc too":          {judge.High, "take ada's work over into main, of which a runs on your machine, as do 2 more"},
	} {
		action.Files = []judge.File{{Path: "ada.diff", SHA256: "aa", Size: 1, Mode: "644", Runs: true, Lies: lies}}
		ask := judge.Ask{Gate: judge.GateStart, Action: action, By: alice}
		if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.HITL || v.Risk != want.risk {
			t.Errorf("%q: %s at %s", lies, v.Decision, v.Risk)
		}
		if got := f.Subject(acme, judge.GateStart, &action, &judge.AgentRef{}); got.Headline != want.headline {
			t.Errorf("%q", got.Headline)
		}
	}
}
