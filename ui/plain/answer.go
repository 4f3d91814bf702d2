package plain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/command"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// choice is one numbered way to answer.
type choice struct {
	text string
	do   func()
}

// answer shows an approval in full and offers what can be done with it. What
// is then sent is bound to what was shown.
func (r *reader) answer(ids []string) {
	var a judge.Approval
	if len(ids) == 1 {
		found, err := r.eng.Judge.Approval(r.ctx, r.by.Tenant, ids[0])
		if err != nil {
			r.wrong("error: %v", err)
			return
		}
		a = found
	} else {
		open := r.eng.Snapshot(r.by.Tenant).Approvals
		if len(open) == 0 {
			r.out.line("nothing waits for you")
			return
		}
		if len(open) > 1 {
			r.out.line("%d approvals wait; this one is the most urgent", len(open))
		}
		a = *open[0]
	}
	r.card(&a)
	switch {
	case a.Status != judge.Open:
		r.wrong("it can't be answered: it is %s", a.Status)
		return
	case r.readOnly:
		r.wrong("%v", errReadOnly)
		return
	case !r.env.Role.Includes(command.Approver): // nor is it shown to who decides
		r.wrong("your role %s can't answer approvals; approver can", r.env.Role)
		return
	}
	if err := r.eng.Judge.Shown(r.ctx, r.by, a.ApprovalID); err != nil {
		r.wrong("error: %v", err)
		return
	}
	r.look(a.ApprovalID)
	r.choose(r.choices(&a, r.now().UTC()))
}

// wrong says why an answer can't be given.
func (r *reader) wrong(format string, args ...any) {
	r.out.line(format, args...)
	r.fail(command.ExitFailed)
}

// card says exactly what would happen, why it is asked and what stands around it.
func (r *reader) card(a *judge.Approval) {
	r.out.block("approval", a.ApprovalID)
	r.out.block("state", string(a.Status))
	if a.Status == judge.Open {
		ends, how := a.Ends()
		r.out.block("time left", pane.Until(r.now(), ends, how))
	}
	card := *a
	if whole, err := r.eng.Judge.Card(r.ctx, r.by.Tenant, a.ApprovalID); err == nil { // the digests are here all the same
		card = whole
	}
	var grounds *judge.Grounds
	if why, err := r.eng.Judge.Grounds(r.ctx, r.by.Tenant, a.ApprovalID); err == nil {
		grounds = &why
	}
	text := gate.Sheet(&pane.Env{Now: r.now(), Glyphs: screen.ASCII()}, &card, grounds)
	label := ""
	for _, p := range text {
		label = cmp.Or(p.Label, label)
		if !p.Head {
			r.out.block(label, p.Plain())
		}
	}
	for _, v := range r.eng.Presence.Here(r.by.Tenant) {
		if v.Approval == a.ApprovalID && v.Name != r.by.Name {
			r.out.block("looked at by", v.Name)
		}
	}
}

func (r *reader) choices(a *judge.Approval, shown time.Time) []choice {
	line := func(verb string, more ...string) func() {
		words := []string{"approval", verb, a.ApprovalID}
		if verb == "approve" || verb == "deny" {
			words = append(words, "--digest", a.Digest, "--shown", shown.Format(time.RFC3339Nano))
		}
		return func() { r.run(append(words, more...)) }
	}
	if a.Gate == judge.GateQuestion {
		return r.answers(a, line)
	}
	approve := line("approve")
	if pane.HighRisk(a.Risk) {
		approve = r.with("reason to approve a "+string(a.Risk)+" risk", func(text string) { line("approve", "--reason", text)() })
	}
	all := []choice{
		{"leave it open", func() { r.out.line("left open") }},
		{"approve exactly this, once", approve},
		{"deny; the agent is told and goes on", r.with("reason to deny", func(text string) { line("deny", "--reason", text)() })},
		{"deny and end the task as blocked", r.with("reason to deny", func(text string) { line("deny", "--abort", "--reason", text)() })},
		{"approve with other arguments", r.edit(a, line)},
		{"put it off for 15 minutes", line("defer", "--for", "15m")},
		{"hand it to somebody else", r.with("name of who is to look at it", func(name string) { line("escalate", "--to", name)() })},
	}
	if len(a.For()) > 0 {
		all = append(all, choice{"approve this and the like from now on, within a time", func() { r.always(a, line) }})
	}
	return all
}

// always asks whom a rule is for, for how long and how often, and shows its line before
// it is given; what is no answer to that is told by the command, and leaves it open.
func (r *reader) always(a *judge.Approval, line func(string, ...string) func()) {
	r.with("for whom: "+strings.Join(a.For(), ", "), func(who string) {
		r.with("for how long, such as 8h, at most 30d", func(expires string) {
			r.with("how often at most, 1-1000", func(uses string) {
				more := []string{"--always", who, "--expires", expires, "--max-uses", uses}
				lasts, _ := core.ParseSpan(expires)
				n, _ := strconv.Atoi(uses)
				rule := a.Offer(judge.Always{For: who, Expires: lasts, MaxUses: n})
				r.with("from now on: "+term.Reveal(rule.Line)+"; why", func(reason string) {
					line("approve", append(more, "--rule-digest", rule.Digest, "--reason", reason)...)()
				})()
			})()
		})()
	})()
}

// edit asks for new arguments, and with a high risk for a reason too.
func (r *reader) edit(a *judge.Approval, line func(string, ...string) func()) func() {
	return r.with("arguments as one line of JSON", func(text string) {
		if err := core.CheckObject("arguments", []byte(text), core.MaxInput); err != nil {
			r.wrong("error: %v; left open", err)
			return
		}
		if !pane.HighRisk(a.Risk) {
			line("approve", "--edit", text)()
			return
		}
		r.with("reason to approve a "+string(a.Risk)+" risk", func(reason string) {
			line("approve", "--edit", text, "--reason", reason)()
		})()
	})
}

// with asks for one line of text; nothing typed changes nothing.
func (r *reader) with(what string, then func(string)) func() {
	return func() {
		r.out.line("%s, or nothing to leave it open:", what)
		r.ask = func(text string) {
			if text == "" {
				r.out.line("left open")
				return
			}
			then(text)
		}
	}
}

// choose offers numbers. Nothing typed leaves all as it is, and so does
// anything that is no number of the list.
func (r *reader) choose(all []choice) {
	for i, c := range all {
		r.out.line("%d. %s", i, c.text)
	}
	r.out.line("type a number:")
	r.ask = func(text string) {
		for i, c := range all {
			if text == fmt.Sprint(i) {
				c.do()
				return
			}
		}
		if text != "" {
			r.wrong("%q is none of the choices; left open", text)
			return
		}
		r.out.line("left open")
	}
}

// answers are the ways to answer a question: each of its options, or an object of
// its schema.
func (r *reader) answers(a *judge.Approval, line func(string, ...string) func()) []choice {
	q, err := a.Question()
	if err != nil {
		r.wrong("error: %v", err)
	}
	say := func(more ...string) func() {
		if !pane.HighRisk(a.Risk) {
			return line("approve", more...)
		}
		return r.with("reason to approve a "+string(a.Risk)+" risk", func(text string) { line("approve", append(more, "--reason", text)...)() })
	}
	all := []choice{{"leave it open", func() { r.out.line("left open") }}}
	switch {
	case err != nil:
	case len(q.Options) > 0:
		for _, o := range q.Options {
			all = append(all, choice{"answer: " + pane.OptionText(o), say("--content", string(core.MustEncode(map[string]string{"option": o.ID})))})
		}
	case q.Needs():
		all = append(all, choice{"answer it", func() {
			for _, f := range overlay.SchemaFields(q.Schema) {
				r.out.block("field", fieldText(f))
			}
			r.with("the answer as one line of JSON", func(text string) {
				if err := q.Check(core.Raw(text)); err != nil {
					r.wrong("error: %v; left open", err)
					return
				}
				say("--content", text)()
			})()
		}})
	default:
		all = append(all, choice{"say yes", say()})
	}
	return append(all,
		choice{"decline; who asks is told and goes on", r.with("reason to deny", func(text string) { line("deny", "--reason", text)() })},
		choice{"cancel; what asks is ended", r.with("reason to deny", func(text string) { line("deny", "--abort", "--reason", text)() })},
		choice{"put it off for 15 minutes", line("defer", "--for", "15m")},
		choice{"hand it to somebody else", r.with("name of who is to look at it", func(name string) { line("escalate", "--to", name)() })},
	)
}

// fieldText is what a question asks for in one line.
func fieldText(f overlay.Field) string {
	parts := []string{f.Name, string(f.Type)}
	if f.Required {
		parts = append(parts, "required")
	}
	if len(f.Enum) > 0 {
		values := core.Map(f.Enum, func(v core.Raw) string { return string(v) })
		parts = append(parts, "one of "+strings.Join(values, " "))
	}
	if len(f.Default) > 0 {
		parts = append(parts, "else "+string(f.Default))
	}
	if f.Description != "" {
		parts = append(parts, f.Description)
	}
	return strings.Join(parts, "; ")
}
