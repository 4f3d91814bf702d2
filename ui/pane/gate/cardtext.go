package gate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// gates are the gates in an operator's words.
var gates = map[judge.Gate]string{
	judge.GateStart:  "before the task may start",
	judge.GateTool:   "before the agent's tool call",
	judge.GateSkill:  "before this step of the skill's run",
	judge.GateResult: "before the result is committed",
	judge.GateBudget: "because a budget is used up",
	judge.GateAgent:  "before the agent is deleted",
	judge.GateIntent: "before what the agent wants is begun",
	judge.GateNet:    "before the connection is made",
	judge.GateGrant:  "so that it may happen without asking",
}

// lay writes the card, top of the screen first.
func (p *Card) lay(env pane.Env) {
	a := p.a
	var t pane.Paras
	if a.Status != judge.Open {
		st := pane.ApprovalState(a)
		t.Add("", st.Glyph(env.Glyphs)+" "+p.outcome(), st.Role())
	}
	t.Exact("intent", pane.Intent(a), screen.Title)
	what := a.Action.Kind
	for _, more := range []string{a.Action.Server, a.Action.Tool} {
		if more != "" {
			what += " " + more
		}
	}
	t.Exact("action", what, screen.Accent)
	label := "tool call"
	for _, line := range pane.During(a) {
		t.Exact(label, line, screen.Text)
		label = ""
	}
	p.args = t.Exact("arguments", p.pretty, screen.Text)
	if p.files != nil && len(p.files.Action.Files) > 0 {
		p.args = files(p.files, &t)
	} else if len(a.Action.Files) > 0 {
		p.args = files(a, &t)
	} else if p.files != nil && p.files.Caveat != "" {
		t.Add("", p.files.Caveat, screen.Warn)
	}
	if a.PriorDigest != "" {
		t.Add("", "edited: these arguments replace those of digest "+short(a.PriorDigest), screen.Warn)
	}
	if len(a.Action.Effects) > 0 {
		t.Exact("effects", strings.Join(a.Action.Effects, ", "), screen.Warn)
	}
	t.Add("touches", p.touches(), screen.Text)
	t.Add("risk", string(a.Risk), pane.RiskRole(a.Risk))
	why := a.ReasonCode
	if a.Rationale != "" {
		why += ": " + a.Rationale
	}
	t.Exact("why asked", why, screen.Text)
	if a.Confidence != nil {
		t.Add("confidence", pane.Confidence(*a.Confidence), screen.Text)
	}
	rule := a.RuleID
	if rule == "" {
		rule = "none matched: ask a person"
	}
	t.Add("rule", rule+", policy "+short(a.PolicyVersion), screen.Text)
	if a.Unsandboxed {
		t.Add("", "the policy that asked is a program, and ran UNSANDBOXED", screen.Danger)
	}
	t.Head("who asks")
	agent := a.Agent.Name
	if agent != "" && a.Agent.Role != "" {
		agent += " (" + a.Agent.Role + " in " + a.Agent.Project + ")"
	}
	role := screen.Accent
	if reach, how := pane.Profile(a.Agent.Profile); reach != "" {
		agent += ", " + reach
		if how == screen.Danger {
			agent, role = agent+": "+pane.OpenMeans, how
		}
	}
	t.Add("agent", agent, role)
	t.Add("asked by", string(a.RequestedKind)+" "+a.RequestedBy, screen.Text)
	if a.TaskID != "" {
		t.Add("task", a.TaskID+", attempt "+strconv.Itoa(a.Attempt+1), screen.Accent)
	}
	if a.Gate == judge.GateNet {
		t.Exact("run", a.Action.CallID, screen.Text)
	}
	t.Add("session", a.Session, screen.Accent)
	t.Add("trace", a.TraceID, screen.Dim)
	if p.grounds != nil {
		t.Head("why was I asked?")
		pane.Why(p.grounds, &t)
	}
	t.Head("time")
	t.Add("asked", pane.When(env.Now, a.CreatedAt), screen.Text)
	if a.Status == judge.Open {
		ends, how := a.Ends()
		t.Add("deadline", ends.Format("15:04:05")+", then: "+how, screen.Warn)
	}
	if !a.DeferredUntil.IsZero() {
		t.Add("deferred", "until "+a.DeferredUntil.Format("15:04:05"), screen.Warn)
	}
	if a.EscalatedTo != "" {
		t.Add("escalated", "to "+a.EscalatedTo+" "+pane.When(env.Now, a.EscalatedAt), screen.Warn)
	}
	if a.EscalatedTo == "" && len(a.Approvers) > 0 {
		t.Add("to answer", strings.Join(a.Approvers, " or "), screen.Warn)
	}
	if a.FirstBy != "" {
		t.Add("two persons", "first approved by "+a.FirstBy+"; another person must approve too", screen.Warn)
	}
	t.Head("past answers of this shape")
	for i := range p.past {
		t.Add("", pastLine(env, &p.past[i]), screen.Text)
	}
	if len(p.past) == 0 {
		t.Add("", "none", screen.Dim)
	}
	t.Head("bound to")
	t.Add("digest", a.Digest, screen.Dim)
	t.Add("id", a.ApprovalID, screen.Dim)
	p.Page.Set(t)
}

// touches says what the effect is about and in which tenant.
func (p *Card) touches() string {
	a := p.a
	when := gates[a.Gate]
	if when == "" {
		when = string(a.Gate)
	}
	if a.TaskID == "" {
		return fmt.Sprintf("tenant %s, %s", a.TenantID, when)
	}
	return fmt.Sprintf("task %s of tenant %s, %s", a.TaskID, a.TenantID, when)
}

func pastLine(env pane.Env, a *judge.Approval) string {
	st := pane.ApprovalState(a)
	text := st.Label(env.Glyphs)
	if a.AnsweredBy != "" {
		text += " by " + a.AnsweredBy
	}
	text += " " + pane.Age(env.Now, a.AnsweredAt) + " ago"
	if took := a.AnsweredAt.Sub(a.ShownAt); !a.ShownAt.IsZero() && took > 0 {
		text += fmt.Sprintf(", after %s", took.Round(time.Second))
	}
	if a.AnswerReason != "" {
		text += ": " + a.AnswerReason
	}
	return text
}

// short is the start of a digest.
func short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}

// Draw shows the card and, in its last rows, the countdown and whether an
// answer counts now.
func (p *Card) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	if p.a != nil && p.Stale(env) {
		p.lay(env)
	}
	if p.a == nil || c.H() < 3 {
		p.Page.Draw(c, focused)
		return
	}
	top, bottom := c.Bounds().SplitBottom(1)
	p.Page.Draw(c.Sub(top), focused)
	b := c.Sub(bottom)
	if p.a.Status != judge.Open {
		b.TextIn(0, 0, b.W(), screen.Dim, p.outcome())
		return
	}
	role := screen.Warn
	if pane.HighRisk(p.a.Risk) {
		role = screen.Danger
	}
	x := b.Text(0, 0, role, string(p.a.Risk)+" risk")
	ends, how := p.a.Ends()
	x = b.Text(x+1, 0, screen.Text, pane.Left(env.Now, ends)+" left, then: "+how)
	if also := others(env, p.a.ApprovalID); also != "" {
		x = b.Text(x+1, 0, screen.Accent, also)
	}
	_, why := p.Armed()
	if why == "" && !env.Settled {
		why = "wait"
	}
	if why != "" {
		b.TextRight(x+1, 0, b.W()-x-1, screen.Dim, why)
	} else {
		b.TextRight(x+1, 0, b.W()-x-1, screen.Good, "armed")
	}
}

// others says who else has this card before them.
func others(env pane.Env, id string) string {
	var names []string
	for _, v := range env.Snap.Visitors {
		if v.Approval == id && v.ID != env.Visitor {
			names = append(names, v.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "(" + term.Clean(names[0]) + " looks too)"
	}
	return fmt.Sprintf("(%d others look too)", len(names))
}

// Resize keeps one row for the countdown.
func (p *Card) Resize(w, h int) {
	if h >= 3 {
		h--
	}
	p.Record.Resize(w, h)
}

// files writes what an approval's files hold, as judge.Card read them, and
// returns the last paragraph.
func files(a *judge.Approval, t *pane.Paras) (last int) {
	t.Add("bound", strings.TrimPrefix(a.Bound+". "+a.Caveat, ". "), screen.Text)
	for i := range a.Action.Files {
		f := &a.Action.Files[i]
		role := screen.Accent
		if f.Unbound != "" {
			role = screen.Warn
		}
		last = t.Exact("file", f.Line(), role)
		if body := f.Diff + f.Text; body != "" {
			last = t.Exact("", body, screen.Text)
		}
	}
	return last
}
