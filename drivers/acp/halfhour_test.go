package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/exec"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/tree"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	enginetree "swarmdeck/engine/tree"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// halfHours are what real agents ask for in half an hour, each in the shape of its own
// wire: a step a line.
const halfHours = "testdata/halfhours"

// step is one of them. One that leaves the wall has to ask.
type step struct {
	What   string          `json:"what"`
	Leaves bool            `json:"leaves"`
	Call   json.RawMessage `json:"call"`
}

func readSteps(path string) (all []step, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", path, err, line)
		}
		all = append(all, s)
	}
	return all, nil
}

// playSteps is an agent that asks for the steps of a file of its directory, one after another.
func playSteps(file string) int {
	steps, err := readSteps(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	here, err := os.Getwd()
	if err != nil {
		return 2
	}
	in, asked, session := bufio.NewScanner(os.Stdin), -1, `"s"`
	in.Buffer(nil, 1<<20)
	var prompt json.RawMessage // that it works on
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return 2
		}
		answer := "{}"
		switch m.Method {
		case "initialize":
			answer = `{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}`
		case "session/new":
			answer = `{"sessionId":` + session + `}`
		case "session/prompt":
			prompt, asked, m.ID = m.ID, 0, nil
		case "": // an answer
			asked++
			m.ID = nil
		}
		if m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
		}
		switch {
		case prompt == nil:
		case asked < len(steps):
			call := strings.ReplaceAll(string(steps[asked].Call), "$DIR", here)
			fmt.Printf(`{"jsonrpc":"2.0","id":"ask-%d","method":"session/request_permission","params":{"sessionId":%s,"toolCall":%s,"options":[`+
				`{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}`+"\n",
				asked, session, call)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", prompt)
			prompt = nil
		}
	}
	return 0
}

// unmarked are trees of which no state is kept with each call, as a git for each takes longer
// than all the rest.
type unmarked struct{ enginetree.Driver }

func (unmarked) Mark(context.Context, enginetree.Tree, string) error { return nil }

// halfHour is an engine under the default policy, with agents in trees of their own.
type halfHour struct {
	*testing.T
	eng  *engine.Engine
	by   core.Caller
	repo string
}

func newHalfHour(t *testing.T) *halfHour {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	h := &halfHour{T: t, repo: filepath.Join(base, "repo"), by: core.Caller{Tenant: "t_test", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}}
	h.no(err)
	h.no(os.CopyFS(h.repo, os.DirFS(halfHours)))
	h.no(os.WriteFile(filepath.Join(h.repo, "few"), []byte(`{"call":{"toolCallId":"call_1","title":"make","kind":"execute","rawInput":{"command":"make"}}}`+"\n"), 0o644))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "first"}} {
		cmd := osexec.Command("git", args...)
		cmd.Dir, cmd.Env = h.repo, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	cells := drivertest.Cells(t, cell.Options{})
	trees := expect.Of(tree.New(tree.Options{Cells: cells, Dir: filepath.Join(base, "trees"), Kept: filepath.Join(base, "kept")}))(h.T)
	acp := expect.Of(NewRuntime(cells, Options{Local: keeper.Local{State: filepath.Join(base, "homes"), Dir: base}}))(h.T)
	run := expect.Of(exec.NewRunner(cells, exec.RunnerOptions{Dir: base}))(h.T)
	path := filepath.Join(base, "engine.db")
	sealer := expect.Of(audit.OpenSealer(path + ".key"))(h.T)
	db := expect.Of(store.Open(path, store.Options{Seal: sealer.Seal}))(h.T)
	h.eng, err = engine.Open(t.Context(), engine.Options{
		Store: db, Sealer: sealer, Spill: t.TempDir(), Trees: unmarked{trees},
		Runtimes: map[string]fleet.Runtime{"acp": acp}, Runners: map[string]swarm.Runner{exec.Kind: run},
	})
	h.no(err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := expect.Later(func() error { return h.eng.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		expect.Is(t, <-ran, nil)
		_ = h.eng.Close()
		_ = db.Close()
	})
	expect.Of(h.eng.Swarm.CreateTenant(t.Context(), h.by, h.by.Tenant))(h.T)
	return h
}

func (h *halfHour) no(err error) {
	h.Helper()
	expect.No(h, err)
}

// agent makes one that plays the steps of a file of its directory, in a tree of its own or in
// the repository itself.
func (h *halfHour) agent(name, file string, own bool, profile string) (dir string) {
	h.Helper()
	dir = h.repo
	if own {
		made := expect.Of(h.eng.Trees.Prepare(h.Context(), h.by, enginetree.Wanted{Project: "p", Agent: name, Dir: h.repo}))(h.T)
		dir = made.Dir()
	}
	_, err := h.eng.Fleet.Create(h.Context(), h.by, fleet.Create{
		Name: name, Project: "p", Runtime: "acp", Command: []string{os.Args[0]}, Env: map[string]string{"ACP_TEST_STEPS": file}, Dir: dir, Profile: profile,
	})
	h.no(err)
	return dir
}

// decided is what came of a call.
type decided struct{ decision, reason, rationale string }

// play gives agents their half hours, denies all that is asked, and tells what was decided about
// each step of each, by its call.
func (h *halfHour) play(names ...string) map[string]map[string]decided {
	h.Helper()
	whose, out := map[string]string{}, map[string]map[string]decided{}
	for _, name := range names {
		t, err := h.eng.Swarm.Dispatch(h.Context(), h.by, swarm.Dispatch{Kind: fleet.KindPrompt, Agent: name, Input: core.MustEncode(map[string]string{"agent": name, "message": "go"})})
		h.no(err)
		whose[t.TaskID], out[name] = name, map[string]decided{}
	}
	ctx := context.Background()
	for task := range whose {
		expect.Await(h.T, "the half hours are over", func() bool {
			open := expect.Of(h.eng.Judge.Open(ctx, h.by.Tenant))(h.T)
			for _, a := range open {
				out[whose[a.TaskID]][a.Action.CallID] = decided{"asks", a.ReasonCode, a.Rationale}
				_, _ = h.eng.Judge.Answer(ctx, h.by, a.ApprovalID, judge.Answer{Reason: "not now"}) // once
			}
			now := expect.Of(h.eng.Tasks.Get(ctx, h.by.Tenant, task))(h.T)
			return now.Status.Terminal()
		})
	}
	recall := expect.Of(h.eng.Judge.Trial(ctx, h.by, ""))(h.T)
	for n := 1; ; n++ {
		page := expect.Of(h.eng.Judge.Decisions(ctx, h.by.Tenant, core.Filter{Status: string(judge.Approve), Page: n, Size: 100}))(h.T)
		for _, d := range page.Items {
			if d.Gate != judge.GateTool {
				continue
			}
			ask, known, err := recall.Recall(ctx, d.DecisionID)
			expect.True(h, err == nil && known && ask.Contained.Holds, "what decision %s was about: %+v, %v", d.DecisionID, ask, err)
			out[whose[d.TaskID]][ask.Action.CallID] = decided{"approve", d.ReasonCode, d.Rationale}
		}
		if !page.Info.Next {
			return out
		}
	}
}

// TestAHalfHourOfAnAgentAsksOnlyAboutWhatLeavesItsWall plays what real agents ask for in half an
// hour to the default policy. docs/judge.md leads to the table of it.
func TestAHalfHourOfAnAgentAsksOnlyAboutWhatLeavesItsWall(t *testing.T) {
	t.Parallel()
	const page = "testdata/steps.md"
	h := newHalfHour(t)
	files := expect.Of(filepath.Glob(halfHours + "/*"))(h.T)
	expect.Must(t, len(files) >= 3, "%d half hours", len(files))
	rows := map[decided][]string{}
	var order []decided
	var agents []string
	for _, file := range files {
		agents = append(agents, filepath.Base(file))
		h.agent(filepath.Base(file), filepath.Base(file), true, "")
	}
	all := h.play(agents...)
	for _, agent := range agents {
		steps := expect.Of(readSteps(filepath.Join(halfHours, agent)))(h.T)
		got, questions := all[agent], 0
		for i, s := range steps {
			d := got[fmt.Sprintf("call_%d", i+1)]
			switch {
			case s.Leaves && d.decision != "asks":
				t.Errorf("%s: %s: %v, which leaves the wall: %s", agent, s.What, d, s.Call)
			case !s.Leaves && d.decision != "approve":
				questions++
				t.Logf("%s: %s: %v: %s", agent, s.What, d, s.Call)
			}
			if d.rationale = ""; rows[d] == nil {
				order = append(order, d)
			}
			if !slices.Contains(rows[d], s.What) {
				rows[d] = append(rows[d], s.What)
			}
		}
		expect.True(t, questions <= 3, "%s: %d questions in %d steps; at most 3 are right", agent, questions, len(steps))
	}
	table := strings.Builder{}
	table.WriteString("# What the default policy says to half an hour of real agents\n\n| decision | reason | steps |\n|---|---|---|\n")
	for _, d := range order {
		fmt.Fprintf(&table, "| %s | `%s` | %s |\n", d.decision, d.reason, strings.Join(rows[d], "; "))
	}
	if *anew {
		h.no(os.WriteFile(page, []byte(table.String()), 0o600))
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != table.String() {
		t.Errorf("%s does not tell what the policy does now (%v); go test ./drivers/acp -run HalfHour -update\n%s", page, err, &table)
	}
}

// TestWhatIsNotContainedAsksAndSaysWhy has agents call make whose calls nothing holds.
func TestWhatIsNotContainedAsksAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		own     bool
		profile string
		want    string
	}{
		"own":    {true, "worker", ""},
		"reads":  {true, "reader", ""},
		"shared": {false, "worker", "its directory is shared"},
		"open":   {true, "open", "its profile is open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHalfHour(t)
			h.agent("ada", "few", at.own, at.profile)
			d := h.play("ada")["ada"]["call_1"]
			switch {
			case at.want == "" && d.reason != "contained":
				t.Errorf("asks: %+v", d)
			case at.want != "" && (d.decision != "asks" || !strings.Contains(d.rationale, "It is not contained: "+at.want)):
				t.Errorf("%+v, which is not contained: %s", d, at.want)
			}
		})
	}
}

// TestACommandOfAnAgentIsContainedInItsOwnTree has an agent dispatch commands.
func TestACommandOfAnAgentIsContainedInItsOwnTree(t *testing.T) {
	t.Parallel()
	h := newHalfHour(t)
	dir := h.agent("ada", "few", true, "")
	ada := core.Caller{Tenant: h.by.Tenant, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
	for _, c := range []struct {
		dir, profile string
		argv         []string
		want         string
	}{
		{dir, "", []string{"rm", "-rf", "build"}, "contained"},
		{dir, "reader", []string{"make", "-n"}, "contained"},
		{dir, "", []string{"git", "push"}, "destructive"},
		{dir, "open", []string{"make"}, "profile.open"},
		{h.repo, "", []string{"make"}, "denied"},
		{filepath.Dir(dir), "", []string{"make"}, "denied"},
	} {
		made, err := h.eng.Swarm.Dispatch(h.Context(), ada, swarm.Dispatch{Kind: exec.Kind, Input: core.MustEncode(map[string]any{"argv": c.argv, "dir": c.dir, "profile": c.profile})})
		if c.want == "denied" {
			expect.Err(t, err, core.Kind(core.Denied), c.dir, "is not the agent's to name")
			continue
		}
		h.no(err)
		var d judge.GateDecision
		if made.ApprovalID != "" {
			a := expect.Of(h.eng.Judge.Approval(h.Context(), h.by.Tenant, made.ApprovalID))(h.T)
			made.DecisionID = a.DecisionID
		}
		d = expect.Of(h.eng.Judge.Decision(h.Context(), h.by.Tenant, made.DecisionID))(h.T)
		expect.Is(t, d.ReasonCode, c.want, c.argv, "in", c.dir, "profile", c.profile, d.Rationale)
	}
}
