package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const agentName = "agent"

// Files say what processes may read and write; *files.Service does.
type Files interface {
	// Places are what file rules say of an agent of a role.
	Places(tenant, role, agent string) files.Places
}

// askedShown is how many of its latest tasks the sheet lists.
const askedShown = 8

// Agent shows one agent.
type Agent struct {
	*pane.Detail[fleet.Agent]
	agents  Agents
	files   Files
	reader  pane.Reader[asked]
	history asked
	err     error
	asked   string // the agent's state when its history was read
	acts    pane.Reader[*fleet.Activity]
	did     fleet.Activity
	counts  []string // of the diffs of did

	planOpen bool // the plan is shown whole
}

// asked is a page of what the agent was asked.
type asked = core.Page[fleet.HistoryItem]

// NewAgent makes the sheet of one agent: how it is and why, what it works on,
// its plan, tool calls and changes of files, what it was asked, and its live
// conversation below.
func NewAgent(of Agents, rules Files, logs pane.Logs) *Agent {
	p := &Agent{agents: of, files: rules, reader: pane.NewReader[asked](agentName), acts: pane.NewReader[*fleet.Activity](agentName)}
	p.Detail = pane.NewDetail(pane.DetailSpec[fleet.Agent]{
		Name: agentName, Text: p.text, State: pane.AgentState, Gone: "it was deleted",
		Kept: func(env pane.Env, name string) *fleet.Agent {
			if i := slices.IndexFunc(env.Snap.Agents, func(a *fleet.Agent) bool { return a.Name == name }); i >= 0 {
				return env.Snap.Agents[i]
			}
			return nil
		},
		Title: func(a *fleet.Agent) string { return a.Name },
		Item: func(a *fleet.Agent) pane.Item {
			it := agentItem(a)
			if line := p.Page.Item(); line.Kind == queueItem { // the message that the cursor is on
				it.Part = line.ID
			}
			return it
		},
		Log: func(it pane.Item) string { return "agent:" + it.ID }, Logs: logs,
	})
	return p
}

func (p *Agent) Show(env pane.Env, it pane.Item) tea.Cmd {
	if it.ID != p.Item().ID {
		p.forget()
	}
	return p.Detail.Show(env, it)
}

func (p *Agent) Reset() {
	p.Detail.Reset()
	p.forget()
}

func (p *Agent) forget() {
	p.history, p.err, p.asked, p.planOpen = asked{}, nil, "", false
	p.did, p.counts = fleet.Activity{}, nil
}

// Refresh reads what the agent does, and its history when what it works on has changed.
func (p *Agent) Refresh(env pane.Env) tea.Cmd {
	tenant, name, known := env.Tenant, p.Item().ID, p.did.At
	cmd := tea.Batch(p.Detail.Refresh(env), p.acts.Read(name, func(ctx context.Context) (*fleet.Activity, error) {
		return p.agents.Activity(ctx, tenant, name, known)
	}))
	state := name
	if a, _ := p.Got(); a != nil {
		state += " " + a.TaskID + " " + string(a.Status)
	}
	if p.asked == state {
		return cmd
	}
	p.asked = state
	return tea.Batch(cmd, p.reader.Read(name, func(ctx context.Context) (asked, error) {
		return p.agents.History(ctx, tenant, name, core.Filter{Page: 1, Size: askedShown})
	}))
}

func (p *Agent) Update(env pane.Env, body any) tea.Cmd {
	name := p.Item().ID
	if a, ok := p.acts.Take(name, body); ok {
		if a.Err == nil && a.Got != nil {
			p.took(a.Got)
			p.Lay(env)
		}
		if a.Again {
			return p.Refresh(env)
		}
		return nil
	}
	r, ok := p.reader.Take(name, body)
	if !ok {
		return p.Detail.Update(env, body)
	}
	if p.err = r.Err; r.Err == nil {
		p.history = r.Got
	}
	p.Lay(env)
	if r.Again {
		p.asked = ""
		return p.Refresh(env)
	}
	return nil
}

// took has what the agent does.
func (p *Agent) took(did *fleet.Activity) {
	p.did, p.counts = *did, nil
	for i := range did.Diffs {
		p.counts = append(p.counts, diff.Counts(did.Diffs[i].Text))
	}
}

// Do implements pane.Pane: on the plan's line, open and fold show or hide its steps.
func (p *Agent) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if (action == "open" || action == "fold") && !p.Log.Zoomed() && p.Page.Item().Kind == planName {
		p.planOpen = !p.planOpen
		p.Lay(env)
		return nil, true
	}
	return p.Detail.Do(env, action)
}

// Picture implements pane.Viewer: where the agent comes from, its runs, forks
// and subagents.
func (p *Agent) Picture(pane.Env) pane.Item {
	return pane.LineageOf(dag.NodeRef{Type: dag.TypeAgent, ID: p.Item().ID})
}

func (p *Agent) text(env pane.Env, a *fleet.Agent, out *pane.Paras) {
	if a.Waiting != "" {
		text := "approval " + a.Waiting
		if asks := pane.Asks(&env, a); asks != a.Waiting {
			text += ": " + asks
		}
		if n := len(a.Asked); n > 0 {
			text += fmt.Sprintf(", and %d more", n)
		}
		out.Exact("waits for", text, screen.Warn)
	}
	if ask := pane.Asking(&env, a); ask != nil {
		out.Exact("asks", "approval "+ask.ApprovalID+": "+pane.Headline(ask), screen.Warn)
	}
	out.Exact("asks", a.Attention, screen.Warn)
	if a.Stuck != nil {
		out.Add("stuck", a.Stuck.Text+", noticed "+pane.When(env.Now, a.Stuck.Since), screen.Warn)
	}
	out.Add("reason", a.Reason, screen.Bad)
	for line := range strings.Lines(a.Said) {
		out.Add("", strings.TrimSpace(line), screen.Dim)
	}
	if a.TaskID != "" {
		out.Add("task", a.TaskID+" "+a.LastTask, screen.Accent)
	} else if a.LastStatus != "" {
		s := pane.StatusState(a.LastStatus)
		out.Add("last task", s.Label(env.Glyphs)+" "+a.LastTask, s.Role())
	} else {
		out.Add("last task", a.LastTask, screen.Text)
	}
	p.queue(&env, a, out)
	act := &p.did
	acted := len(act.Plan)+act.Made+act.Drew > 0
	if acted { // what it does comes before what it is made of
		p.used(a, out)
		if a.Offers == nil {
			out.Add("mode", act.Mode, screen.Text)
		}
		p.plan(&env, act, out)
		calls(&env, act, out)
		p.diffs(&env, act, out)
		out.Head("made of")
	}
	out.Add("role", a.Role+" in "+a.Project, screen.Text)
	if reach, role := pane.Profile(a.Profile); role == screen.Danger {
		out.Add("profile", reach+": it "+pane.OpenMeans, role)
	} else {
		out.Add("profile", reach, screen.Text)
	}
	if a.Lacks != "" {
		out.Add("", "its wall lacks: "+a.Lacks, screen.Warn)
	}
	if a.Profile == "reader" || a.Profile == "worker" {
		also := files.OfOptions(a.Options).With(p.files.Places(env.Tenant, a.Role, a.Name))
		out.Add("reads", strings.Join(also.Read, ", "), screen.Text)
		out.Add("writes", strings.Join(also.Write, ", "), screen.Text)
		out.Add("hidden", strings.Join(also.Hide, ", "), screen.Text)
	}
	offers(a, out)
	out.Fields(&env, a, "runtime command,argv host directory:dir session:session_id,opens")
	if a.PID > 0 {
		out.Add("process", fmt.Sprintf("%d, %d restarts", a.PID, a.Restarts), screen.Text)
	}
	if !acted {
		p.used(a, out)
	}
	out.Fields(&env, a, "created:created_at,dim")
	out.Head("history (" + strconv.Itoa(p.history.Info.Total) + ")")
	if p.err != nil {
		out.Add("", p.err.Error(), screen.Bad)
	}
	for i := range p.history.Items {
		h := &p.history.Items[i]
		s := pane.StatusState(h.Status)
		out.Link(pane.Age(env.Now, h.CreatedAt), s.Label(env.Glyphs)+" "+h.Message, s.Role(), pane.Item{Kind: "task", ID: h.TaskID})
	}
}

// offers tells what the agent's program is set to, and what else it can be.
func offers(a *fleet.Agent, out *pane.Paras) {
	for _, what := range []fleet.Setting{fleet.SetMode, fleet.SetModel} {
		all, now := a.Offered().Of(what)
		out.Add(string(what), now, screen.Text)
		if len(all) > 1 {
			out.Add("", "of "+fleet.Allowed(all), screen.Dim)
		}
	}
	names := core.Map(a.Offered().Commands, func(c fleet.Command) string { return "/" + c.Name })
	out.Add("commands", core.ClipTo(strings.Join(names, " "), 1000), screen.Text)
}

// used is what the agent has spent.
func (p *Agent) used(a *fleet.Agent, out *pane.Paras) {
	u := a.Usage
	out.Add("used", fmt.Sprintf("%d tasks, %d tokens, $%.2f", u.Tasks, u.Tokens, u.CostUSD), screen.Text)
	if run := p.did.Usage; run.Tokens > 0 || run.CostUSD > 0 {
		out.Add("", fmt.Sprintf("in its newest run %d tokens, $%.2f", run.Tokens, run.CostUSD), screen.Dim)
	}
	if s := p.did.Split; s != (fleet.Split{}) {
		out.Add("", fmt.Sprintf("of these %d in, %d cached, and %d out", s.Input, s.Cached, s.Output), screen.Dim)
	}
	switch c := p.did.Context; {
	case c.Size > 0:
		out.Add("context", fmt.Sprintf("%d of %d tokens, %d %%", c.Used, c.Size, c.Used*100/c.Size), screen.Text)
	case c.Used > 0:
		out.Add("context", fmt.Sprintf("%d tokens", c.Used), screen.Text)
	}
}
