package command_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func (d *deck) complete(line string) []string {
	env := d.env
	var all []string
	for _, c := range command.Complete(context.Background(), &env, line) {
		all = append(all, c.Text)
	}
	return all
}

func TestCompletionOffersWordsFlagsValuesAndLiveIDs(t *testing.T) {
	d := newDeck(t)
	session := str(d.object("session create --name night")["session_id"])
	slow := str(d.object(`task dispatch --kind exec.run --input '{"argv":["sleep","30"]}'`)["task_id"])
	d.line("task wait " + slow + " --status running --timeout 10s")
	done := str(d.object(`task dispatch --kind exec.run --input '{"argv":["true"]}' --wait`)["task_id"])
	d.line("agent create helper --project tools --role reader -- cat")
	d.no(os.WriteFile(filepath.Join(d.dir, "a file.json"), nil, 0o600))
	d.write("move.yaml", "name: move\nversion: 1.0.0\ntags: [motion]\nparameters_schema: {}\nrunner: {kind: builtin, name: echo}\n")
	d.line("skill load move.yaml")
	for _, c := range []struct {
		line string
		want []string // each must be there; a leading ! means must not
	}{
		{"", []string{"task", "session", "agent", "!help me"}},
		{"ta", []string{"task", "!session"}},
		{"task", []string{"task"}},
		{"pause", []string{"agent pause", "session pause"}},
		{"resume agent", []string{"agent resume", "subagent resume", "!session resume"}},
		{"freeze agent", []string{"estop on", "!agent pause"}},
		{"task ", []string{"dispatch", "list", "why"}},
		{"task di", []string{"dispatch", "!list"}},
		{"policy ", []string{"rules"}},
		{"policy rules ", []string{"list", "revoke"}},
		{"task dispatch --", []string{"--kind", "--input", "--priority", "--tenant"}},
		{"task dispatch --kind x --", []string{"!--kind", "--input"}},
		{"task dispatch --ki", []string{"--kind", "!--input"}},
		{"task dispatch --kind ", []string{"exec.run", "agent.prompt"}},
		{"task dispatch --kind=ex", []string{"--kind=exec.run"}},
		{"task list --status ", []string{"queued", "timed_out"}},
		{"task list -o ", []string{"json", "wide"}},
		{"-o json task li", []string{"list"}},
		{"task show ", []string{slow, done}},
		{"task show " + slow[:5], []string{slow}},
		{"task cancel ", []string{slow, "!" + done}},
		{"task retry ", []string{"!" + slow, "!" + done}},
		{"task wait " + slow + " ", []string{done}},
		{"task show " + slow + " ", []string{"!" + done}},
		{"session start ", []string{session}},
		{"task list --session ", []string{session}},
		{"agent show ", []string{"helper"}},
		{"skill show ", []string{"move", "move@1.0.0"}},
		{"skill list --tag ", []string{"motion"}},
		{"skill load mo", []string{"move.yaml"}},
		{"help skill", []string{"skill", "skill-file"}},
		{"agent create x --project ", []string{"tools"}},
		{"agent create x --role ", []string{"reader"}},
		{"budget set ", []string{"tenant", "agent:helper", "session:" + session}},
		{"audit show ", []string{"ev_8a039_0000000001"}},
		{"task list --tenant ", []string{"t_default"}},
		{"theme show m", []string{"mono"}},
		{"completion ", []string{"bash", "fish"}},
		{"help task ", []string{"dispatch"}},
		{"task dispatch --input @a", []string{"'@a file.json'"}},
		{"up ", []string{"'a file.json'"}},
		{"task nosuch ", nil},
		{"agent create x -- ", nil},
		{"'unfinished", nil},
		{"task show --nosuch ", []string{slow}},
	} {
		got := d.complete(c.line)
		for _, want := range c.want {
			not, bad := strings.CutPrefix(want, "!")
			expect.True(t, bad != slices.Contains(got, not), "%q: %s in %q", c.line, want, got)
		}
		expect.True(t, c.want != nil || len(got) == 0, "%q offers %q", c.line, got)
	}
	d.line("task cancel " + slow)
}

func TestCompletionNeverChangesAnything(t *testing.T) {
	d := newDeck(t)
	d.complete("session start ")
	all := d.objects("tenant list")
	expect.True(t, len(all) == 0, "completing made a tenant: %v", all)
	for _, need := range d.needs[:1] {
		expect.True(t, need.ReadOnly && !need.Active, "completing asked for %+v", need)
	}
	d.env.Open = nil
	got := d.complete("session start ")
	expect.True(t, len(got) == 0, "%q", got)
}

func TestShellsCompleteThroughTheirProtocol(t *testing.T) {
	d := newDeck(t)
	d.line("agent create helper --project tools -- cat")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"__complete", "agent", "show", ""}, "helper\t"},
		{[]string{"__completeNoDesc", "agent", "show", ""}, "helper\n:4\n"},
		{[]string{"__complete", "task", "list", "--sta"}, "--status\t"},
		{[]string{"__complete", "up", ""}, ":0\n"},
		{[]string{"__complete", "agent", "create", "x", "--dir", ""}, ":16\n"},
		{[]string{"__complete"}, "task\t"},
	} {
		code, out, _ := d.run(c.args...)
		expect.True(t, code == 0 && strings.Contains(out, c.want), "%q: exit %d\n%s", c.args, code, out)
	}
}

func TestDescribeSaysWhatALineWouldDo(t *testing.T) {
	for line, want := range map[string]command.Info{
		"task list -o json":           {Path: "task list", Effect: command.Reads, Confirm: command.ConfirmNone, Role: command.Viewer},
		"--tenant t_x task cancel x":  {Path: "task cancel", Effect: command.Destroys, Confirm: command.ConfirmAsk, Role: command.Operator, Undo: "task retry"},
		"agent delete x --yes":        {Path: "agent delete", Effect: command.Destroys, Confirm: command.ConfirmType, Role: command.Operator},
		"estop on":                    {Path: "estop on", Effect: command.Writes, Confirm: command.ConfirmNone, Role: command.Operator, Undo: "estop off", Needs: "reason"},
		"approval approve x --edit y": {Path: "approval approve", Effect: command.Writes, Confirm: command.ConfirmAsk, Role: command.Approver},
		"tenant create t_x":           {Path: "tenant create", Effect: command.Writes, Confirm: command.ConfirmNone, Role: command.Admin},
		"policy rules revoke x":       {Path: "policy rules revoke", Effect: command.Writes, Confirm: command.ConfirmAsk, Role: command.Approver},
		"nosuch":                      {Effect: command.Reads, Confirm: command.ConfirmNone, Role: command.Viewer},
		"task":                        {Effect: command.Reads, Confirm: command.ConfirmNone, Role: command.Viewer},
		"":                            {Effect: command.Reads, Confirm: command.ConfirmNone, Role: command.Viewer},
	} {
		words := expect.Of(command.Split(line))(t)
		got := command.Describe(words)
		got.Short, got.Use = "", ""
		expect.Is(t, got, want, line)
	}
	for _, info := range command.Commands() {
		expect.True(t, info.Short != "" && !strings.HasSuffix(info.Short, ".") && info.Role != "", "%s: %+v", info.Path, info)
	}
}
