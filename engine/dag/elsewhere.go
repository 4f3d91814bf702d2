package dag

import (
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
)

// Elsewhere is a turn of an agent that no task asked for: somebody talks to it past us.
// Who that is nobody says. Its correlation id is Turn: the same again is told once.
type Elsewhere struct {
	Agent, Session string
	Turn           string
}

// AskedElsewhere is the asked_kind of the runs of such turns.
const AskedElsewhere = "elsewhere"

// AskedIn begins a turn's run with what the agent was asked. It reports false where the
// record has the turn already.
func (d *DAG) AskedIn(tx *audit.Tx, x Elsewhere, text string) (fresh bool, err error) {
	run, err := x.newest(reader{tx})
	if err != nil || run != "" {
		return false, err
	}
	if run, err = d.StartIn(tx, x.run(""), true); err != nil {
		return false, err
	}
	return true, d.Tell(tx, run, func(r *Recording) {
		r.run.correlation = x.Turn
		r.Said(ListMain, RoleUser, text)
	})
}

// AnsweredIn tells all that the agent said in a turn so far, and ends its run. What comes
// after an end that was none is a run that follows from it; what the record has is not
// told again. It does nothing for a turn that the record has not.
func (d *DAG) AnsweredIn(tx *audit.Tx, x Elsewhere, answers []string) error {
	run, err := x.newest(reader{tx})
	if err != nil || run == "" {
		return err
	}
	told, asked, err := x.told(reader{tx})
	if err != nil {
		return err
	}
	answers = slices.DeleteFunc(slices.Clone(answers), func(text string) bool { return slices.Contains(told, clip(text, maxValue)) })
	now, err := d.RunIn(tx, run)
	if err == nil && now.Status == "finished" && len(answers) > 0 {
		run, err = d.StartIn(tx, x.run(now.Head), true)
	}
	if err != nil {
		return err
	}
	return d.Tell(tx, run, func(r *Recording) {
		r.run.correlation, r.heard = x.Turn, asked
		for _, text := range answers {
			r.Said(ListMain, RoleAssistant, text)
		}
		r.Finish(true)
	})
}

// run is a run of the turn, which an event led to.
func (x Elsewhere) run(parent string) RunInfo {
	return RunInfo{AgentID: x.Agent, SessionID: x.Session, Reason: "user", AskedKind: AskedElsewhere, Parent: parent, correlation: x.Turn}
}

// newest is the newest run of the turn; "" when there is none.
func (x Elsewhere) newest(r reader) (run string, err error) {
	err = x.each(r, func(e Event) { run = e.RunID })
	return run, err
}

// told are the texts that the agent said in the turn, and the newest message of it.
func (x Elsewhere) told(r reader) (texts []string, newest []NodeRef, err error) {
	err = x.each(r, func(e Event) {
		for _, n := range e.Nodes {
			m, ok := n.Body.(*Message)
			if !ok || len(m.Content) != 1 {
				continue
			}
			newest = []NodeRef{n.Ref()}
			if m.Role == RoleAssistant {
				texts = append(texts, m.Content[0].Text)
			}
		}
	})
	return texts, newest, err
}

func (x Elsewhere) each(r reader, fn func(Event)) error {
	under := record.Text(x.Turn)
	n, err := r.last(correlated, under)
	if err != nil {
		return err
	}
	return r.walk(listed{correlated, under, n}, true, 0, n, func(e Recorded) error {
		fn(e.Event)
		return nil
	})
}

// leave ends the run of a turn that nobody tells of any more, as the agent works for
// another.
func (d *DAG) leave(tx *audit.Tx, run string) error {
	now, err := d.RunIn(tx, run)
	if err != nil || now.Status != "running" || now.TaskID != "" || now.Reason != "user" {
		return err
	}
	return d.cutOff(tx, run)
}
