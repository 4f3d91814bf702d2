package judge_test

import (
	"errors"
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

// kept has the versions of files that it holds.
type kept map[string]string

func (k kept) Content(_, sha string) ([]byte, bool) {
	text, ok := k[sha]
	return []byte(text), ok
}

func TestAMergeThatCannotBeShownCannotBeApproved(t *testing.T) {
	f := setup(t, func(o *judge.Options) { o.Contents = kept{"aa": "diff"} })
	for _, c := range []struct {
		file judge.File
		ok   bool
	}{
		{judge.File{Path: "ada.diff", SHA256: "aa", Size: 4, Mode: "644", Runs: true}, true},
		{judge.File{Path: "ada.diff", SHA256: "ab", Size: 4, Mode: "644", Runs: true}, false},
		{judge.File{Path: "ada.diff", Unbound: "its diff has more than 32 MiB"}, false},
	} {
		a := f.opened(judge.Ask{Gate: judge.GateStart, By: alice, TaskID: "tk_1", Action: judge.Action{
			Kind: "tree.merge", Args: core.Raw(`{"agent":"ada","into":"main"}`), Files: []judge.File{c.file},
		}})
		_, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "it is fine"})
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, core.Kind(core.Conflict)) {
			t.Errorf("%+v: %v", c.file, err)
		}
		if _, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Reason: "not seen"}); !c.ok && err != nil {
			t.Errorf("%+v can't be denied: %v", c.file, err)
		}
	}
}
