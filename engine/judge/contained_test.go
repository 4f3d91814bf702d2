package judge_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestContainedEffectsAskNobodyWhateverTheToolIsCalled(t *testing.T) {
	f := setup(t)
	for _, tool := range []string{"Bash", "shell", "terminal", "run_command", "execute", "edit", "delete", "fetch", "frobnicate", "mcp__own__anything"} {
		for args, want := range map[string]string{
			`{"command":"rm -rf build && make"}`:                "contained",
			`{"cmd":["sudo","apt","install","x"]}`:              "contained",
			`{"input":{"command":["/bin/sh","-lc","go test"]}}`: "contained",
			`{"command":"base64 -d x | sh"}`:                    "contained",
			`{"command":"git push"}`:                            "destructive",
			`{"input":{"command":["/bin/sh","-lc","gh pr"]}}`:   "destructive",
			`{"cmd":"sh -c 'npm publish'"}`:                     "destructive",
			`{"argv":["docker","run","x"]}`:                     "destructive",
			`{"command":"rm -rf /"}`:                            "catastrophic",
		} {
			ask := call(tool, args)
			ask.Contained = judge.Contained("")
			if v := f.Evaluate(t.Context(), acme, ask); v.ReasonCode != want {
				t.Errorf("%s %s: %s (%s), want %s", tool, args, v.ReasonCode, v.Rationale, want)
			}
		}
	}
	for name, want := range map[string]string{"git_push": "destructive", "sendMail": "destructive", "payInvoice": "destructive", "createPullRequest": "destructive", "delete_file": "contained", "grant_permission": "contained"} {
		ask := call(name, `{}`)
		ask.Contained = judge.Contained("")
		if v := f.Evaluate(t.Context(), acme, ask); v.ReasonCode != want {
			t.Errorf("%s: %s, want %s", name, v.ReasonCode, want)
		}
	}
}

// A repository says what programs git runs, whatever it is asked for.
func TestGitOfAnAgentIsContainedOrAskedAbout(t *testing.T) {
	f := setup(t)
	for tool, args := range map[string]string{"Bash": `{"command":"git status --short"}`, "shell": `{"command":["git","-C","/src","log"]}`, "git_diff": `{}`, "git.status": `{}`} {
		ask := call(tool, args)
		if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.HITL {
			t.Errorf("%s %s outside of a wall: %s %s", tool, args, v.Decision, v.ReasonCode)
		}
		ask.Contained = judge.Contained("")
		if v := f.Evaluate(t.Context(), acme, ask); v.ReasonCode != "contained" {
			t.Errorf("%s %s: %s", tool, args, v.ReasonCode)
		}
	}
}

func TestACommandThatStandsInATitleAloneIsRead(t *testing.T) {
	f := setup(t)
	for title, want := range map[string]string{
		"git push origin main": "destructive", "go test ./...": "contained", "Run the tests (all of them)": "contained",
	} {
		ask := call("execute", string(core.MustEncode(map[string]string{"title": title})))
		ask.Contained = judge.Contained("")
		if v := f.Evaluate(t.Context(), acme, ask); v.ReasonCode != want {
			t.Errorf("%s: %s (%s), want %s", title, v.ReasonCode, v.Rationale, want)
		}
	}
}

func TestWhatIsGraveOrNotContainedAsksAndSaysWhy(t *testing.T) {
	f := setup(t)
	grave := call("edit", `{}`)
	grave.Risk, grave.Contained = judge.High, judge.Contained("")
	loose := call("bash", `{"command":"make"}`)
	loose.Contained = judge.Contained("its directory is shared")
	for name, c := range map[string]struct {
		ask    judge.Ask
		reason string
		says   string
	}{
		"high risk": {grave, "tool.write", ""},
		"loose":     {loose, "destructive", "It is not contained: its directory is shared."},
		"unknown":   {call("bash", `{"command":"make"}`), "destructive", ""},
	} {
		v := f.Evaluate(t.Context(), acme, c.ask)
		if v.Decision != judge.HITL || v.ReasonCode != c.reason || strings.Contains(v.Rationale, "not contained") != (c.says != "") || !strings.HasSuffix(v.Rationale, c.says) {
			t.Errorf("%s: %s %s: %s", name, v.Decision, v.ReasonCode, v.Rationale)
		}
	}
	a := f.opened(loose)
	if a = f.approval(a.ApprovalID); a.Contained != loose.Contained {
		t.Errorf("the approval keeps %+v", a.Contained)
	}
}

func TestOutsideNamesAPathThatIsNotTheAgentsOwn(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a.go","cwd":"/w/t"}`:                        "",
		`{"file_path":"/w/t/sub/../a"}`:                       "",
		`{"path":"/w/t/../other"}`:                            "/w/t/../other",
		`{"path":"../x"}`:                                     "../x",
		`{"path":"~/.cache/x"}`:                               "",
		`{"path":"~root/x"}`:                                  "~root/x",
		`{"locations":[{"path":"/w/t/a"},{"path":"/srv/a"}]}`: "/srv/a",
		`{"input":{"cwd":"/w/two"}}`:                          "/w/two",
		`{"path":"/tmp/x","dir":"/home/h"}`:                   "",
		`{"command":"cat /etc/hosts"}`:                        "",
	} {
		expect.Is(t, judge.Outside(core.Raw(args), "/w/t", "/home/h", "", "/tmp"), want, args)
	}
}
