package gate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
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

	judge.GateQuestion: "because it wants to know",
}

// lay writes the card.
func (p *Card) lay(env pane.Env) {
	a := *p.a
	if p.card != nil {
		a.Card, a.Action.Files = p.card.Card, p.card.Action.Files
	}
	t, end := sheet(&env, &a, p.args, p.grounds)
	p.end = end
	p.Page.Set(t)
}

// Sheet writes all that a person needs to answer an approval well, with all of its
// arguments, for where nothing is drawn.
func Sheet(env *pane.Env, a *judge.Approval, grounds *judge.Grounds) pane.Paras {
	t, _ := sheet(env, a, newArguments(a.Action.Args, nil, false), grounds)
	return t
}

// sheet writes all that a person needs to answer an approval well, top of the screen
// first, and which paragraph is the last that a high risk must be read to. The card
// may have been filled in by judge.Card, and grounds may be nil.
func sheet(env *pane.Env, a *judge.Approval, args *arguments, grounds *judge.Grounds) (t pane.Paras, end int) {
	if a.Status != judge.Open {
		st := pane.ApprovalState(a)
		t.Add("", st.Glyph(env.Glyphs)+" "+outcome(a), st.Role())
	}
	t.Exact("would", pane.Headline(a), screen.Title)
	words := "agent says"
	if a.RequestedKind != core.Agent {
		words = "asker says"
	}
	if a.Said && a.Intent != "" {
		t.Exact(words, quoted(a.Intent), screen.Dim)
	}
	t.Add("risk", string(a.Risk)+": "+joined(a.ReasonCode, a.Rationale), pane.RiskRole(a.Risk))
	if need := a.Needed(); need > 1 {
		text := fmt.Sprintf("%d must approve, and who asked is none of them", need)
		if len(a.Consents) > 0 {
			text += "; so far: " + strings.Join(a.Consenting(), ", ")
		}
		t.Add("persons", text, screen.Warn)
	}
	if a.EscalatedTo == "" && len(a.Approvers) > 0 {
		t.Add("to answer", strings.Join(a.Approvers, " or "), screen.Warn)
	}
	t.Add("touches", touches(a), screen.Text)
	t.Exact("hosts", strings.Join(a.Subject.Hosts, ", "), screen.Warn)
	t.Exact("recipients", strings.Join(a.Subject.Recipients, ", "), screen.Warn)
	t.Exact("amounts", strings.Join(a.Subject.Amounts, ", "), screen.Danger)
	t.Exact("paths", strings.Join(a.Subject.Paths, ", "), screen.Text)
	t.Exact("does", strings.Join(a.Subject.Effects, ", "), screen.Text)
	if a.Subject.Undo != "" {
		role := screen.Warn
		if a.Subject.Reversible == "yes" {
			role = screen.Good
		}
		t.Add("reversible", a.Subject.Reversible+": "+a.Subject.Undo, role)
	}
	if a.Around != nil {
		t.Add("waits for it", strings.Join(a.Around.Behind, "\n"), screen.Text)
	}
	for _, in := range a.Inquiries {
		t.Exact("asked", "by "+in.By+" "+pane.Age(env.Now, in.At)+" ago: "+quoted(in.Text), screen.Accent)
		if in.Reply != "" {
			t.Exact(words, quoted(in.Reply), screen.Text)
		} else {
			t.Add("", "no reply yet", screen.Dim)
		}
	}
	end = does(env, a, args, &t)
	asks(env, a, &t)
	if a.Around != nil {
		around(env, a.Around, &t)
	}
	if grounds != nil {
		t.Head("why was I asked?")
		pane.Why(grounds, &t)
	}
	t.Head("bound to")
	t.Fields(env, a, "digest,dim id:approval_id,dim trace:trace_id,dim")
	return t, end
}

// does writes exactly what would be done, and returns the last paragraph of it.
func does(env *pane.Env, a *judge.Approval, args *arguments, t *pane.Paras) (last int) {
	t.Head("exactly")
	t.Exact("action", joined(a.Action.Kind, a.Action.Server, a.Action.Tool), screen.Accent)
	for i := range a.Action.Files {
		t.Exact("mind", a.Action.Files[i].Lies, screen.Danger)
	}
	label := "tool call"
	for _, line := range pane.During(a) {
		t.Exact(label, line, screen.Text)
		label = ""
	}
	changed := map[string]bool{}
	for i := range a.Changes {
		c := &a.Changes[i]
		changed[c.Path] = true
		args.change(c, t)
	}
	last = args.write(t)
	if a.Fixed && a.Status == judge.Open {
		t.Add("", a.Agent.Name+" can't be given edited arguments: edit denies it and says what to do instead", screen.Dim)
	}
	t.Exact("answered with", string(a.Content), screen.Accent)
	if a.PriorDigest != "" {
		t.Add("", "edited: these arguments replace those of digest "+short(a.PriorDigest), screen.Warn)
	}
	t.Exact("declares", strings.Join(a.Action.Effects, ", "), screen.Warn)
	t.Add("bound", joined(a.Bound, a.Caveat), screen.Text)
	for i := range a.Action.Files {
		f := &a.Action.Files[i]
		role := screen.Accent
		if f.Unbound != "" {
			role = screen.Warn
		}
		last = t.Exact("file", f.Line(), role)
		switch {
		case changed[f.Path]:
		case f.Diff != "":
			for _, file := range args.diff(f.Diff).files {
				last = t.Flow(file)
			}
		case f.Text != "":
			last = t.Exact("", f.Text, screen.Text)
		}
	}
	return last
}

// asks writes who asks, by which rule, and until when.
func asks(env *pane.Env, a *judge.Approval, t *pane.Paras) {
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
		until := "the command ends"
		if a.TaskID == "" || a.Agent.Name != "" {
			until = "the agent starts again"
		}
		t.Add("answer holds", "for this run: until "+until, screen.Text)
	}
	t.Add("session", a.Session, screen.Accent)
	t.Add("confidence", pane.Confidence(a.Confidence), screen.Text)
	t.Add("rule", cmp.Or(a.RuleID, "none matched: ask a person")+", policy "+short(a.PolicyVersion), screen.Text)
	t.Exact("always would", a.Always, screen.Text)
	if a.Unsandboxed {
		t.Add("", "the policy that asked is a program, and ran UNSANDBOXED", screen.Danger)
	}
	t.Head("time")
	t.Add("asked", pane.When(env.Now, a.CreatedAt), screen.Text)
	if a.Status == judge.Open {
		ends, how := a.Ends()
		if ends.IsZero() {
			t.Add("deadline", "none: it waits for an answer", screen.Text)
		} else {
			t.Add("deadline", ends.Format("15:04:05")+", then: "+how, screen.Warn)
		}
	}
	if !a.DeferredUntil.IsZero() {
		t.Add("deferred", "until "+a.DeferredUntil.Format("15:04:05"), screen.Warn)
	}
	if a.EscalatedTo != "" {
		t.Add("escalated", "to "+a.EscalatedTo+" "+pane.When(env.Now, a.EscalatedAt), screen.Warn)
	}
	if a.EscalatedAt.IsZero() && a.EscalateTo != "" {
		t.Add("handed on", "to "+a.EscalateTo+" at "+a.EscalateAt.Format("15:04:05"), screen.Warn)
	}
}

// around writes what the rest of the engine has to say.
func around(env *pane.Env, of *judge.Around, t *pane.Paras) {
	t.Head("past answers of this shape")
	for i := range of.Past {
		t.Exact("", pastLine(env, &of.Past[i]), screen.Text)
	}
	if len(of.Past) == 0 {
		t.Add("", "none", screen.Dim)
	}
	t.Head("cost and output")
	if s := of.Spent; s != nil {
		t.Add("so far", spent(s), screen.Text)
	}
	if s := of.Expected; s != nil {
		t.Add("expected", fmt.Sprintf("%s, the median of %d tasks like it", spent(s), s.Tasks), screen.Text)
	}
	label := "wrote last"
	for _, line := range of.Output {
		t.Exact(label, line, screen.Dim)
		label = ""
	}
}

func spent(s *judge.Spent) string {
	tokens := face.Tokens(s.Tokens)
	if tokens != "" {
		tokens += " tokens"
	}
	return cmp.Or(joined(tokens, pane.Cost(s.CostUSD)), "nothing yet")
}

// quoted puts somebody's words in quotes, on one line that they can't leave.
func quoted(words string) string {
	return `"` + strings.NewReplacer("\r", `\r`, "\n", `\n`, `"`, `\"`).Replace(words) + `"`
}

// touches says what the effect is about and in which tenant.
func touches(a *judge.Approval) string {
	when := cmp.Or(gates[a.Gate], string(a.Gate))
	if a.TaskID == "" {
		return fmt.Sprintf("tenant %s, %s", a.TenantID, when)
	}
	return fmt.Sprintf("task %s of tenant %s, %s", a.TaskID, a.TenantID, when)
}

// pastLine says how somebody answered the same shape, and what came of it.
func pastLine(env *pane.Env, p *judge.Precedent) string {
	text := string(p.Status)
	if p.By != "" {
		text += " by " + p.By
	}
	text += " " + pane.Age(env.Now, p.At) + " ago"
	if p.Same {
		text += ", the same arguments"
	}
	if p.Came != "" {
		text += "; its task " + p.Came
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// outcome says how an answered approval ended, by whom and when.
func outcome(a *judge.Approval) string {
	text := string(a.Status)
	if a.AnsweredBy != "" {
		text += " by " + a.AnsweredBy
	}
	if a.AnsweredFor != "" {
		text += " for " + a.AnsweredFor
	}
	if !a.AnsweredAt.IsZero() {
		text += " " + a.AnsweredAt.Format("15:04:05")
	}
	if a.SelfApproved {
		text += " (self-approved)"
	}
	return pane.Joined(": ", text, a.AnswerReason, a.VoidReason)
}

// joined are the parts that there are, with a space between.
func joined(parts ...string) string { return pane.Joined(" ", parts...) }

// short is the start of a digest.
func short(digest string) string { return digest[:min(len(digest), 12)] }

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
		b.TextIn(0, 0, b.W(), screen.Dim, outcome(p.a))
		return
	}
	role := screen.Warn
	if pane.HighRisk(p.a.Risk) {
		role = screen.Danger
	}
	x := b.Text(0, 0, role, string(p.a.Risk)+" risk")
	ends, how := p.a.Ends()
	left := "waits for an answer"
	if !ends.IsZero() {
		left = pane.Left(env.Now, ends) + " left, then: " + how
	}
	x = b.Text(x+1, 0, screen.Text, left)
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
