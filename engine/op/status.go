package op

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/story"
	"swarmdeck/engine/task"
	"swarmdeck/engine/trend"
)

// Status is what a person wants to know first.
type Status struct {
	Tenant  string       `json:"tenant_id"`
	Needs   []Need       `json:"needs"`          // the most urgent first
	Failed  []Failure    `json:"failed"`         // within the last day, the newest first
	Working []Working    `json:"working"`        // the newest first
	Idle    int          `json:"idle"`           // agents that have nothing to do
	Cost    budget.Usage `json:"cost"`           // of the agents that there are
	More    []string     `json:"more,omitempty"` // members that have more than is listed
	// NobodySince is when the last cockpit was closed, as far as this engine knows; it
	// has no value while one is open.
	NobodySince time.Time `json:"nobody_since,omitzero"`
}

// Need is what goes on once a person does something.
type Need struct {
	Kind   string     `json:"kind"` // approval, agent, budget, estop, trouble
	ID     string     `json:"id"`
	What   string     `json:"what"`
	Agent  string     `json:"agent,omitempty"`
	TaskID string     `json:"task_id,omitempty"`
	Risk   judge.Risk `json:"risk,omitempty"`
	// DeadlineAt is when it is denied without an answer.
	DeadlineAt time.Time `json:"deadline_at,omitzero"`
	LeftS      *float64  `json:"left_s,omitzero"`
	Next       []string  `json:"next"` // command lines
}

// Failure is a task that did not do what it was to do.
type Failure struct {
	TaskID      string      `json:"task_id"`
	Title       string      `json:"title,omitempty"`
	Agent       string      `json:"agent,omitempty"`
	Status      task.Status `json:"status"`
	Why         string      `json:"why"`
	CompletedAt time.Time   `json:"completed_at"`
	Next        []string    `json:"next"`
}

// Working is a task that runs.
type Working struct {
	Agent     string    `json:"agent,omitempty"`
	State     string    `json:"state"`
	TaskID    string    `json:"task_id"`
	Title     string    `json:"title,omitempty"`
	Kind      string    `json:"kind"`
	StartedAt time.Time `json:"started_at"`
}

// Bounds of a status.
const (
	mostNeeds   = 50
	mostFailed  = 10
	mostWorking = 50
	failedSince = 24 * time.Hour
)

func statuses() []*Op {
	return []*Op{define(Op{
		Name: "status", Short: "Say what needs you, what failed and why, who works, and what it cost", Effect: Reads, Example: "status\nstatus -o json",
		Long: "Say what needs you, with the time that is left and the commands that answer; what failed within a day and why; who works on\n" +
			"what; how many agents are idle; what they cost; and since when nobody has a cockpit open.",
	}, func(ctx context.Context, c *Call) (Status, error) {
		s := Status{Tenant: c.By.Tenant, Needs: []Need{}, Failed: []Failure{}, Working: []Working{}}
		if from, until := c.Presence.Away(c.By.Tenant); until.IsZero() {
			s.NobodySince = from
		}
		for _, part := range []func(context.Context, *Call) error{s.needs, s.failed, s.working} {
			if err := part(ctx, c); err != nil {
				return s, err
			}
		}
		return s, nil
	})}
}

// needs are of the snapshot alone: it is in memory.
func (s *Status) needs(_ context.Context, c *Call) error {
	now := c.Snapshot(c.By.Tenant)
	if now.Err != nil {
		return now.Err
	}
	if now.EStop.On {
		s.Needs = append(s.Needs, Need{Kind: "estop", ID: c.By.Tenant, What: "the emergency stop is on: " + now.EStop.Reason, Next: []string{"estop off --reason R"}})
	}
	for _, a := range now.Approvals {
		why := approvalCause(a, face.At{Now: c.Now})
		need := Need{Kind: "approval", ID: a.ApprovalID, What: a.Subject.Headline, Agent: a.Agent.Name, TaskID: a.TaskID, Risk: a.Risk, Next: why.Next}
		if need.DeadlineAt, _ = a.Ends(); !need.DeadlineAt.IsZero() {
			left := need.DeadlineAt.Sub(c.Now).Seconds()
			need.LeftS = &left
		}
		s.Needs = append(s.Needs, need)
	}
	for _, a := range now.Agents {
		if a.State() == string(fleet.Idle) {
			s.Idle++
		}
		s.Cost.Tokens, s.Cost.CostUSD = s.Cost.Tokens+a.Usage.Tokens, s.Cost.CostUSD+a.Usage.CostUSD
		s.Cost.Tasks, s.Cost.WallMS = s.Cost.Tasks+a.Usage.Tasks, s.Cost.WallMS+a.Usage.WallMS
		if why := c.agentCause(a); !now.EStop.On && troubled(a) {
			s.Needs = append(s.Needs, Need{Kind: "agent", ID: a.Name, What: a.State() + ": " + why.Text, Agent: a.Name, TaskID: a.TaskID, Next: why.Next})
		}
	}
	for i := range now.Budgets {
		if b := &now.Budgets[i]; b.Denied || b.Reached != "" && !slices.ContainsFunc(now.Approvals, func(a *judge.Approval) bool { return a.Gate == judge.GateBudget }) {
			why := budgetCause(b)
			s.Needs = append(s.Needs, Need{Kind: "budget", ID: b.Subject, What: "the budget of " + b.Subject + " is used up: " + why.Text, Next: why.Next})
		}
	}
	for _, t := range now.Troubles {
		s.Needs = append(s.Needs, Need{Kind: "trouble", ID: strings.TrimSpace(t.Component + " " + t.About), What: t.Reason, Next: []string{"tenant troubles", "doctor"}})
	}
	s.Needs = upTo(s, "needs", s.Needs, mostNeeds)
	return nil
}

// troubled says that an agent needs a person, but for one that an approval asks.
func troubled(a *fleet.Agent) bool {
	switch {
	case a.Waiting != "" || a.Stopped:
		return false
	case a.Status == fleet.Starting:
		return a.Reason != ""
	}
	return a.Stuck != nil || a.Attention != "" || a.Status == fleet.Failed || a.Status == fleet.Offline
}

func (s *Status) failed(ctx context.Context, c *Call) error {
	for _, status := range []task.Status{task.Failed, task.TimedOut, task.Blocked} {
		page, err := c.Tasks.List(ctx, c.By.Tenant, core.Filter{Status: string(status), Size: mostFailed + 1})
		if err != nil {
			return err
		}
		for i := range page.Items {
			if t := &page.Items[i]; t.RetriedAs == "" && c.Now.Sub(t.CompletedAt) < failedSince {
				s.Failed = append(s.Failed, Failure{TaskID: t.TaskID, Title: t.Title, Agent: t.Agent, Status: t.Status, CompletedAt: t.CompletedAt})
			}
		}
	}
	core.Sort(s.Failed, func(a, b Failure) int { return b.CompletedAt.Compare(a.CompletedAt) })
	s.Failed = upTo(s, "failed", s.Failed, mostFailed)
	for i := range s.Failed {
		r, err := c.Swarm.Why(ctx, c.By.Tenant, s.Failed[i].TaskID)
		if err != nil {
			return err
		}
		s.Failed[i].Why, s.Failed[i].Next = r.Text, taskCause(r).Next
	}
	return nil
}

func (s *Status) working(ctx context.Context, c *Call) error {
	page, err := c.Tasks.List(ctx, c.By.Tenant, core.Filter{Status: string(task.Running), Size: mostWorking})
	if err != nil {
		return err
	}
	for i := range page.Items {
		t := &page.Items[i]
		state := string(t.Status)
		if t.Waiting != "" || t.Paused {
			state = cmp.Or(map[bool]string{true: "waits for you"}[t.Waiting != ""], "paused")
		}
		s.Working = append(s.Working, Working{t.Agent, state, t.TaskID, t.Title, t.Kind, t.StartedAt})
	}
	if page.Info.Next {
		s.More = append(s.More, "working")
	}
	return nil
}

func upTo[T any](s *Status, member string, all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	s.More = append(s.More, member)
	return all[:most]
}

func overviews() []*Op {
	over, by := "hour", "agent"
	return []*Op{define(Op{
		Name: "overview", Short: "Say how it goes at a glance, and how it went over an hour, a day or a week", Effect: Reads,
		Long: "Say who works, waits and fails, the queue, the questions and how long they waited, tokens and money, as a line for each\n" +
			"over --over; and which agents or projects cost most. In the cockpit: key 0.",
		Example: "overview\noverview --over week --by project\noverview -o json",
		Params: []*Param{
			flag(&over, "over", "a time in points: minutes of an hour, quarters of a day, hours of a week").enum("hour", "day", "week"),
			flag(&by, "by", "whose work is listed").enum("agent", "project"),
		},
	}, func(ctx context.Context, c *Call) (Overview, error) {
		o, err := c.Trends.Overview(ctx, c.By.Tenant, over)
		return Overview{o, by}, err
	})}
}

// Overview is one with whose work is listed.
type Overview struct {
	trend.Overview
	By string `json:"by"`
}

// Shares are those that are listed.
func (o *Overview) Shares() []trend.Share {
	if o.By == "project" {
		return o.Projects
	}
	return o.Agents
}

func stories() []*Op {
	var q story.Query
	return []*Op{list(Op{
		Name: "story", Short: "Tell what happened since a time, turn by turn", Kinds: "enum:turn,said,told,ran,edited,tests,asked,answered,denied,failed,log,did",
		Long: "Tell what happened since --since (default 1h ago), the oldest first: which tasks began and ended and what they cost, what\n" +
			"was run with its exit, edited, tested, asked and answered by whom, and why something failed. Of an AGENT all that it did\n" +
			"is told, else each task's outcome and what people did. --page 1 is the newest. In the cockpit: key .",
		Example: "story ada --since 10m\nstory --project web --since 2h\nstory --kind failed,asked",
		Params: []*Param{
			maybe(&q.Agent, "AGENT", "agent"), flag(&q.Project, "project", "of the agents of this `PROJECT`").from("project"),
		},
		Tool: Tool{Name: "tell_story", By: []string{"kind", "since", "match"}, Size: core.MaxPageSize},
	}, func(ctx context.Context, c *Call, f core.Filter) (page core.Page[story.Line], err error) {
		if q.Agent == "" {
			q.Agent = f.Agent
		}
		if q.Since = f.Since; q.Since.IsZero() {
			q.Since = c.Now.Add(-time.Hour)
		}
		lines, more, err := c.Story(ctx, c.By.Tenant, q)
		lines = slices.DeleteFunc(lines, func(l story.Line) bool {
			return !core.Wants(f.Kind, l.What) || !core.Wants(f.Task, l.TaskID) || !f.Within(l.At) || !f.Finds(l.Text)
		})
		if page.Items, page.Info.Total = lines, len(lines); f.Page > 0 || f.Size > 0 {
			if f, err = f.Check(); err == nil {
				slices.Reverse(lines)
				page = core.PageOf(lines, f)
				slices.Reverse(page.Items)
			}
		}
		page.Info.AtLeast = more
		return page, err
	})}
}
