package story

import (
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// tasks tells which began, which ended and with what, what they cost, and why one failed.
func (s *teller) tasks() error {
	seen := map[string]bool{}
	read := func(f core.Filter, pages int) error {
		for f.Page, f.Size = 1, page; f.Page <= pages; f.Page++ {
			found, err := s.Tasks.List(s.ctx, s.tenant, f)
			if err != nil {
				return err
			}
			old := false
			for i := range found.Items {
				t := &found.Items[i]
				old = old || t.CreatedAt.Before(s.q.Since)
				if !seen[t.TaskID] && s.tells(t.Agent) && (s.q.Agent == "" || t.Agent == s.q.Agent) && (t.CompletedAt.IsZero() || !t.CompletedAt.Before(s.q.Since)) {
					seen[t.TaskID] = true
					if err := s.task(t); err != nil {
						return err
					}
				}
			}
			if old || !found.Info.Next || len(seen) >= mostTurns {
				s.more = s.more || !old && found.Info.Next
				return nil
			}
		}
		s.more = true
		return nil
	}
	if err := read(core.Filter{Agent: s.q.Agent}, mostTurns/page); err != nil || s.q.Agent != "" {
		return err
	}
	for _, status := range []task.Status{task.Running, task.Failed, task.TimedOut, task.Blocked} { // older ones
		if err := read(core.Filter{Status: string(status)}, 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *teller) task(t *task.Task) error {
	at := t.CreatedAt
	if !t.StartedAt.IsZero() {
		at = t.StartedAt
	}
	if at.Before(s.q.Since) && s.turns[t.TaskID] != nil {
		at = s.turns[t.TaskID].head.At
	}
	head := &s.of(t.TaskID, t.Agent, at).head
	used, err := s.Swarm.Budgets.Usage(s.ctx, s.tenant, "task:"+t.TaskID)
	if err != nil {
		return err
	}
	words := []string{string(t.Status)}
	if t.Attempt > 0 {
		words[0] += fmt.Sprintf(" at attempt %d", t.Attempt+1)
	}
	if !t.CompletedAt.IsZero() && !t.StartedAt.IsZero() {
		words = append(words, "took "+t.CompletedAt.Sub(t.StartedAt).Round(time.Second).String())
	}
	if used.Tokens > 0 {
		words = append(words, fmt.Sprintf("%d tokens", used.Tokens))
	}
	if used.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", used.CostUSD))
	}
	head.Text = core.ClipTo(t.Title, mostText/2) + ": " + strings.Join(words, ", ")
	if t.Title == "" {
		head.Text = t.Kind + head.Text
	}
	head.Bad = t.Status == task.Failed || t.Status == task.TimedOut || t.Status == task.Blocked
	if !head.Bad {
		return nil
	}
	why, err := s.Swarm.Why(s.ctx, s.tenant, t.TaskID)
	if err == nil {
		s.add(Line{At: t.CompletedAt, What: "failed", Agent: t.Agent, TaskID: t.TaskID, Text: why.Text, Bad: true, Noun: "task", ID: t.TaskID})
	}
	return err
}

// approvals tells what was asked, and who answered what.
func (s *teller) approvals() error {
	add := func(a *judge.Approval, what, text string, at time.Time, bad bool) {
		if s.tells(a.Agent.Name) && (s.q.Agent == "" || a.Agent.Name == s.q.Agent) {
			s.add(Line{At: at, What: what, Agent: a.Agent.Name, TaskID: a.TaskID, Text: a.Subject.Headline + ": " + text, Bad: bad, Noun: "approval", ID: a.ApprovalID})
		}
	}
	all, err := s.Judge.Ended(s.ctx, s.tenant, s.q.Since, mostAsked, func(a *judge.Approval) {
		text := string(a.Status)
		if a.AnsweredBy != "" {
			text += " by " + a.AnsweredBy
		}
		if a.AnswerReason != "" {
			text += ": " + a.AnswerReason
		}
		add(a, "answered", text, a.AnsweredAt, a.Status != judge.Approved)
	})
	if err != nil {
		return err
	}
	s.more = s.more || !all
	for _, a := range s.Judge.Live(s.tenant) {
		if a.Status == judge.Open {
			add(a, "asked", "waits for an answer", a.CreatedAt, true)
		}
	}
	return nil
}

// checks tells what the checks of projects said of agents' work.
func (s *teller) checks() error {
	for name := range s.agents {
		r := s.Trees.Review(s.tenant, name)
		if r.Checked == nil || r.Checked.At.Before(s.q.Since) {
			continue
		}
		l := Line{At: r.Checked.At, What: "tests", Agent: name, Text: fmt.Sprintf("%d checks passed", len(r.Checked.Runs)), Noun: "agent", ID: name}
		for i := range r.Checked.Runs {
			if run := &r.Checked.Runs[i]; run.Code != 0 {
				l.Text, l.Bad, l.Exit = fmt.Sprintf("%s: exit %d", core.Join(run.Command), run.Code), true, &run.Code
			}
		}
		s.add(l)
	}
	return nil
}

// log tells how much an agent's processes wrote for each task, and what last.
func (s *teller) log() error {
	last := map[string]*Line{}
	for n := 1; n <= mostLogged/page; n++ {
		found, err := s.Fleet.Log(s.ctx, s.tenant, s.q.Agent, core.Filter{Page: n, Size: page})
		if err != nil {
			return err
		}
		for _, line := range found.Items {
			switch {
			case line.Timestamp.Before(s.q.Since):
				n = mostLogged
			case line.Source != "log" && line.Source != "stderr" && line.Source != "stdout" || line.TaskID == "":
			case last[line.TaskID] == nil:
				last[line.TaskID] = &Line{At: line.Timestamp, What: Log, Agent: s.q.Agent, TaskID: line.TaskID, Text: firstLine(line.Message), Times: 1, Noun: "agent", ID: s.q.Agent}
			default:
				last[line.TaskID].Times++
			}
		}
		if !found.Info.Next {
			break
		}
	}
	for _, l := range last {
		if l.Times > 1 {
			l.Text = "the last: " + l.Text
		}
		s.add(*l)
	}
	return nil
}

// deeds tells what people did, and what became of trees, policies and agents.
func (s *teller) deeds() error {
	if s.q.Agent != "" {
		events, err := s.Audit.Trail(s.ctx, s.tenant, s.agents[s.q.Agent].AuditSeq, page)
		for i := range events {
			s.deed(&events[i])
		}
		return err
	}
	for n := 1; n <= mostDone/page; n++ {
		found, err := s.Audit.Told(s.ctx, s.tenant, core.Filter{Since: s.q.Since, Page: n, Size: page})
		if err != nil {
			return err
		}
		for i := range found.Items {
			s.deed(&found.Items[i])
		}
		if !found.Info.Next {
			return nil
		}
	}
	s.more = true
	return nil
}

// deed tells an event of the audit log, but for what is told by what it is about.
func (s *teller) deed(e *audit.Event) {
	if e.CreatedAt.Before(s.q.Since) || e.Routine {
		return
	}
	p, err := e.Data()
	if err != nil {
		return
	}
	noun, what, _ := strings.Cut(e.EventType, ".")
	switch noun {
	case "agent":
		var to struct {
			To     fleet.AgentStatus `json:"to"`
			Reason string            `json:"reason"`
		}
		_ = core.DecodeStored(p.Detail, &to) // of other events it is something else
		bad := to.To == fleet.Failed || to.To == fleet.Offline
		if s.agents[p.ID] == nil || e.Kind != core.Operator && !bad {
			return
		}
		if bad {
			what = string(to.To) + " " + to.Reason
		}
		s.loose = append(s.loose, done(e, p.ID, strings.ReplaceAll(what, "_", " ")+" "+p.ID, bad))
	case "tree", "review":
		if s.agents[p.ID] != nil && e.Kind == core.Operator {
			s.loose = append(s.loose, done(e, p.ID, strings.ReplaceAll(what, "_", " ")+" the work of "+p.ID, false))
		}
	case "task", "approval", "judge", "tool", "result", "step", "message", "subscription", "skill", "execution", "subagent":
	default:
		if s.q.Agent+s.q.Project == "" && e.Kind == core.Operator {
			s.loose = append(s.loose, done(e, "", strings.ReplaceAll(e.EventType, ".", " ")+" "+core.ClipTo(p.ID, 40), noun == "estop"))
		}
	}
}

func done(e *audit.Event, agent, text string, bad bool) Line {
	return Line{At: e.CreatedAt, What: "did", Agent: agent, Text: core.ClipTo(e.Actor+": "+text, mostText), Bad: bad, Noun: "audit", ID: e.EventID}
}
