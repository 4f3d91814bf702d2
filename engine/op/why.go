package op

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/session"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Cause is why something is as it is, and what has it go on.
type Cause struct {
	Noun string `json:"noun"`
	ID   string `json:"id"`
	swarm.Reason
	Next []string `json:"next"` // command lines, the first the likeliest
}

func whys() []*Op {
	return []*Op{show(Op{
		Name: "why", Short: "Say why something waits, failed or stands still, and what has it go on", ForAgents: true,
		Long: "Say why something waits, failed or stands still, and which command has it go on: a task, an agent, an approval, a\n" +
			"session, a budget (tenant, agent:NAME, session:ID) or any other record. An id may be cut short to an ending or a\n" +
			"beginning that no other has.",
		Example: "why ada\nwhy 0042",
	}, arg("ID", "any"), func(ctx context.Context, c *Call, id string) (Cause, error) {
		noun, v, err := c.find(ctx, id, false)
		if err != nil {
			return Cause{}, err
		}
		return c.CauseOf(ctx, noun, v)
	})}
}

// Bare is a record without what is shown beside it.
func Bare(v any) any {
	switch v := v.(type) {
	case ShownTask:
		return v.Task
	case ShownAgent:
		return v.Agent
	}
	return v
}

// CauseOf is why a record of a noun is as it is.
func (c *Call) CauseOf(ctx context.Context, noun string, v any) (Cause, error) {
	switch v := Bare(v).(type) {
	case fleet.Agent:
		return c.agentCause(&v), nil
	case judge.Approval:
		return approvalCause(&v, face.At{Now: c.Now}), nil
	case task.Task:
		r, err := c.Swarm.Why(ctx, c.By.Tenant, v.TaskID)
		return taskCause(r), err
	case session.Session:
		return sessionCause(&v), nil
	case budget.Budget:
		return budgetCause(&v), nil
	}
	return c.otherCause(noun, v)
}

// nextOf are the commands that have a task go on, by what it waits for; @ is what that
// is of, ID the task.
var nextOf = map[string][]string{
	"gate":       {"approval show @", "approval approve @", "approval deny @ --reason R"},
	"session":    {"session start @"},
	"budget":     {"budget set @ --tokens N"},
	"estop":      {"estop off --reason R"},
	"dependency": {"why @"},
	"capacity":   {"task list --status running"},
	"lease":      {"task show ID"},
	"backoff":    {"log ID", "task cancel ID"},
	"retried":    {"why @", "log ID"},
	"":           {"log ID"},
}

func taskCause(r swarm.Reason) Cause {
	c := Cause{Noun: "task", ID: r.TaskID, Reason: r}
	next := nextOf[r.Kind]
	switch {
	case r.Status == task.Succeeded:
		next = []string{"result show ID"}
	case r.Status.Terminal() && r.Kind != "retried":
		switch next = []string{"task retry ID", "log ID"}; {
		case r.Ref == "tenant" || strings.Contains(r.Ref, ":"): // a budget
			next = []string{"budget set @ --tokens N", "task retry ID"}
		case r.Ref != "":
			next = append(next, "why @")
		}
	case r.Kind == "pause":
		noun := "agent"
		if prefix, _, _, is := core.ParseID(r.Ref); is {
			noun = core.IDNoun(prefix)
		}
		next = []string{noun + " resume @"}
	case r.Kind == "capacity" && r.Ref != "":
		next = []string{"why @"}
	case r.Kind == "session" && r.Ref == "":
		next = []string{"task cancel ID"}
	}
	for _, line := range next {
		c.Next = append(c.Next, strings.NewReplacer("@", r.Ref, "ID", r.TaskID).Replace(line))
	}
	return c
}

func (c *Call) agentCause(a *fleet.Agent) Cause {
	why := Cause{Noun: "agent", ID: a.Name, Reason: swarm.Reason{Status: task.Status(a.State())}}
	because := func(kind, ref, text string, next ...string) Cause {
		why.Kind, why.Ref, why.Text, why.Next = kind, ref, strings.TrimSpace(text), next
		for i := range next {
			next[i] = strings.ReplaceAll(next[i], "NAME", a.Name)
		}
		return why
	}
	said := ""
	if a.Said != "" {
		said = "; it wrote: " + core.Cut(strings.Join(strings.Fields(a.Said), " "), 300)
	}
	switch {
	case c.Swarm.EStops.State(c.By.Tenant).On:
		return because("estop", "", "the emergency stop is on: "+c.Swarm.EStops.State(c.By.Tenant).Reason, "estop off --reason R")
	case a.Waiting != "":
		return because("gate", a.Waiting, "it waits for your answer to approval "+a.Waiting, "approval show "+a.Waiting, "approval approve "+a.Waiting, "approval deny "+a.Waiting+" --reason R")
	case a.Attention != "":
		return because("attention", a.TaskID, a.Attention, "agent tell NAME TEXT --now", "log NAME")
	case a.Stuck != nil:
		return because("stuck", a.TaskID, a.Stuck.Text, "log NAME", "agent cancel NAME")
	case a.Paused || a.Pausing:
		return because("pause", "", cmp.Or(a.Reason, "a person paused it"), "agent resume NAME")
	case a.Stopped:
		return because("stopped", "", cmp.Or(a.Reason, "a person stopped it"), "agent start NAME")
	case a.Status == fleet.Failed || a.Status == fleet.Offline:
		return because("process", "", cmp.Or(a.Reason, "its process does not run")+said, "agent restart NAME", "log NAME")
	case a.Status == fleet.Busy:
		return because("", a.TaskID, "it works on "+a.TaskID+": "+a.LastTask, "log NAME -f", "tell NAME TEXT --now")
	case a.Status == fleet.Starting:
		return because("process", "", cmp.Or(a.Reason, "its process is starting")+said, "log NAME", "agent restart NAME")
	}
	return because("", "", cmp.Or(a.Reason, "it has nothing to do"), "tell NAME TEXT")
}

func approvalCause(a *judge.Approval, at face.At) Cause {
	why := Cause{Noun: "approval", ID: a.ApprovalID, Reason: swarm.Reason{Status: task.Status(a.Status), Ref: a.TaskID}}
	said := ""
	if a.AnswerReason != "" {
		said = ": " + a.AnswerReason
	}
	switch a.Status {
	case judge.Open:
		why.Kind = "gate"
		why.Text = cmp.Or(a.Rationale, a.ReasonCode) + " (" + cmp.Or(a.RuleID, a.ReasonCode) + ")"
		if ends, _ := a.Ends(); !ends.IsZero() {
			why.Text += "; it is denied in " + at.Left(ends) + " without an answer"
		}
		why.Next = []string{"approval show " + a.ApprovalID, "approval approve " + a.ApprovalID, "approval deny " + a.ApprovalID + " --reason R"}
		return why
	case judge.Voided:
		why.Text = cmp.Or(a.VoidReason, "what it was about is gone")
	case judge.Expired:
		why.Text = "nobody answered it in time"
	default:
		why.Text = a.AnsweredBy + " answered it" + said
	}
	if a.TaskID != "" {
		why.Next = []string{"why " + a.TaskID}
	}
	return why
}

func sessionCause(s *session.Session) Cause {
	why := Cause{Noun: "session", ID: s.SessionID, Reason: swarm.Reason{Status: task.Status(s.Shown())}}
	switch s.State {
	case session.Created:
		why.Kind, why.Text, why.Next = "session", "it was not started yet", []string{"session start " + s.SessionID}
	case session.Paused:
		why.Kind, why.Text, why.Next = "pause", cmp.Or(s.Reason, "a person paused it"), []string{"session resume " + s.SessionID}
	case session.Stopped:
		why.Text, why.Next = cmp.Or(s.Reason, "a person stopped it")+"; that is final", []string{"session create"}
	default:
		why.Text, why.Next = "its tasks may run", []string{"task list --session " + s.SessionID}
	}
	if n := len(s.Pausing); n > 0 {
		why.Text += fmt.Sprintf("; %d tasks have not acknowledged yet", n)
	}
	return why
}

func budgetCause(b *budget.Budget) Cause {
	limit, share := b.Nearest()
	why := Cause{Noun: "budget", ID: b.Subject, Reason: swarm.Reason{Status: "open"}}
	why.Text = "no limit is set"
	if limit != "" {
		why.Text = fmt.Sprintf("%.0f%% of its %s are used", 100*share, limit)
	}
	if b.Reached != "" {
		why.Status, why.Kind = "reached", "budget"
	}
	flag := cmp.Or(cmp.Or(b.Reached, limit), "tokens")
	why.Next = []string{"budget set " + b.Subject + " --" + flag + " N"}
	return why
}

// because are members of a record that say why it is as it is, the first the most.
var because = []string{"error", "reason", "last_error", "waits", "waiting", "rationale", "note", "about", "description"}

// otherCause is made of what a record says of itself.
func (c *Call) otherCause(noun string, v any) (Cause, error) {
	rows, of := face.Rows(v)
	f := FaceOf(of)
	if f == nil {
		return Cause{}, core.Errorf(core.InvalidInput, "nothing is known of why a %s is as it is", noun)
	}
	row := face.Row(rows, 0)
	why := Cause{Noun: noun, ID: f.ID(row), Reason: swarm.Reason{Status: task.Status(cmp.Or(f.State(row, face.At{Now: c.Now}), "there"))}}
	var members map[string]core.Raw
	if data, err := core.Encode(v); err != nil || core.DecodeStored(data, &members) != nil {
		return why, err
	}
	for _, name := range because {
		text := ""
		if core.DecodeStored(members[name], &text) == nil && text != "" {
			why.Text = text
			break
		}
	}
	state, _, _ := strings.Cut(string(why.Status), " ")
	if o := Of(strings.Fields(noun)[0]); o.Ops != nil {
		for _, o := range o.Ops() {
			if len(o.Params) == 0 || o.Effect == Reads || !strings.HasPrefix(o.Name, noun+" ") {
				continue
			}
			if _, states, _ := strings.Cut(o.Params[0].From, ":"); slices.Contains(strings.Split(states, "|"), state) {
				why.Next = append(why.Next, o.Name+" "+why.ID)
			}
		}
	}
	if why.Text = cmp.Or(why.Text, "nothing is wrong with it"); len(why.Next) == 0 {
		why.Next = []string{"show " + why.ID + " -o wide"}
	}
	return why, nil
}
