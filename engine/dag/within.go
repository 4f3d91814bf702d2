package dag

import (
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// A run can also be told within the transactions of what happens in it: nothing of it
// is gathered, and nothing is lost or said twice over a crash.

// openRuns leads from what works to the run that tells of it: class, name → run.
const openRuns record.Rows[openRun] = "dag.run"

type openRun struct {
	ID      string    `json:"run_id"`
	Network []HostUse `json:"network,omitempty"` // of its end
}

// Whose runs are found.
const (
	ofAgent byte = 'a'
	ofTask  byte = 't' // of an attempt, until its task says what it came to
)

func openKey(class byte, name string) record.Key { return record.Key{class}.Last(name) }

// OpenRun is the run that an agent, subagent or CAD agent is in; "" when it is in none.
func (d *DAG) OpenRun(tx *audit.Tx, agent string) (string, error) {
	run, _, err := openRuns.Get(tx, openKey(ofAgent, agent))
	return run.ID, err
}

// Attempt is the run of a task's attempt, of which all is told but what it came to; ""
// when there is none.
func (d *DAG) Attempt(tx *audit.Tx, task string) (string, error) {
	run, there, err := openRuns.Get(tx, openKey(ofTask, task))
	if err != nil || !there {
		return "", err
	}
	if _, live, err := recording.Get(tx, record.Key(run.ID)); err != nil || live {
		return "", err
	}
	return run.ID, nil
}

// open notes whose run it is. One that was left open by a process that died, or by a
// task that says no more of it, is closed.
func (d *DAG) open(tx *audit.Tx, run string, info RunInfo, attempt bool) error {
	for class, name := range map[byte]string{ofAgent: info.AgentID, ofTask: info.TaskID} {
		if name == "" || class == ofTask && !attempt {
			continue
		}
		old, there, err := openRuns.Get(tx, openKey(class, name))
		switch {
		case err != nil || !there:
		case class == ofTask || !attempt:
			err = d.cutOff(tx, old.ID)
		default:
			err = d.leave(tx, old.ID)
		}
		if err == nil {
			err = openRuns.Put(tx, openKey(class, name), openRun{ID: run})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cause finds the event that led to a run, where the asker does not say: the newest of
// its parent task, what the agent that asked did last, or the fork that made its agent.
func (r reader) cause(info *RunInfo) error {
	if info.Parent != "" {
		return nil
	}
	newest := func(class byte, name string) error {
		if name == "" || info.Parent != "" {
			return nil
		}
		l, err := r.of(class, name)
		if err != nil || l.n == 0 {
			return err
		}
		pos, err := r.entry(l, l.n)
		if err != nil {
			return err
		}
		e, err := r.event(pos)
		info.Parent = e.Event.EventID
		return err
	}
	if err := newest(nameTask, info.ParentTask); err != nil {
		return err
	}
	if info.AskedKind == string(core.Agent) {
		if err := newest(typeCode(TypeAgent), info.AskedBy); err != nil {
			return err
		}
	}
	if info.Parent != "" {
		return nil
	}
	num, _, err := r.num(nameKey(NodeRef{TypeSubagent, info.AgentID}))
	if err != nil || num == 0 {
		return err
	}
	return outEdges.Within(r, record.Seq(num).Byte(relationCode(ForkedFrom)), nil, nil, true, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
		e, err := r.event(rest.Seq())
		if err == nil && e.Event.Kind == KindAgentForked {
			info.Parent = e.Event.EventID
		}
		return false, err
	})
}

// cutOff closes a run that nobody ends any more.
func (d *DAG) cutOff(tx *audit.Tx, run string) error {
	events, err := d.abandon(reader{tx}, run)
	if err != nil {
		return err
	}
	_, err = d.ObserveIn(tx, events...)
	return err
}

// shut forgets whose run it was.
func (d *DAG) shut(tx *audit.Tx, run, agent, task string) error {
	for class, name := range map[byte]string{ofAgent: agent, ofTask: task} {
		if name == "" {
			continue
		}
		now, there, err := openRuns.Get(tx, openKey(class, name))
		if err == nil && there && now.ID == run {
			err = openRuns.Delete(tx, openKey(class, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// StartIn begins a run of an agent in a transaction. attempt says that it is one of
// info's task, to be concluded with it.
func (d *DAG) StartIn(tx *audit.Tx, info RunInfo, attempt bool, nodes ...Node) (run string, err error) {
	run = core.NewUUID(tx.Tenant(), uint64(tx.Add(countRecorded, 1)), nil)
	if err := d.open(tx, run, info, attempt); err != nil {
		return "", err
	}
	if err := (reader{tx}).cause(&info); err != nil {
		return "", err
	}
	h := info.head(run)
	h.TS, h.Nodes = At(tx.Now()), nodes
	e, err := NewEvent(h, info.started())
	if err == nil {
		_, err = d.ObserveIn(tx, e)
	}
	return run, err
}

// Within is a run in one transaction. It tells nothing of a run that is over.
type Within struct {
	d    *DAG
	tx   *audit.Tx
	run  string
	h    head
	over bool

	correlation string // of what it tells
}

// In is a run as a transaction has it.
func (d *DAG) In(tx *audit.Tx, run string) (*Within, error) {
	_, h, err := reader{tx}.run(run)
	if err != nil {
		return nil, err
	}
	return &Within{d: d, tx: tx, run: run, h: *h, over: h.Events == 0 || h.Status == "finished"}, nil
}

// Newest is the newest event of the run.
func (w *Within) Newest() EventRef { return EventRef{w.h.Head} }

// head is the head of the next event, which the newest led to.
func (w *Within) head() Head {
	at := w.tx.Now()
	if last := w.h.LastAt.at; last.After(at) {
		at = last // a run's times never go back
	}
	return Head{
		TS: At(at), RunID: w.run, AgentID: w.h.AgentID, TaskID: w.h.TaskID, SessionID: w.h.SessionID, TraceID: w.h.TraceID,
		CorrelationID: w.correlation, Parent: &EventRef{w.h.Head},
	}
}

func (w *Within) tell(h Head, b Body) error {
	e, err := NewEvent(h, b)
	if err != nil {
		return fmt.Errorf("record a %s: %w", b.Kind(), err)
	}
	if _, err = w.d.ObserveIn(w.tx, e); err == nil {
		w.h.fold(&e)
	}
	return err
}

// Say tells a message of one of the run's lists, DERIVED_FROM the nodes named.
func (w *Within) Say(list string, role MessageRole, parts []ContentPart, from ...NodeRef) error {
	if w.over {
		return nil
	}
	h := w.head()
	n := w.message(h.TS, role, parts)
	h.Nodes = []Node{n}
	for _, f := range from[:min(len(from), maxHeard)] {
		h.Edges = append(h.Edges, Edge{Type: DerivedFrom, From: n.Ref(), To: f})
	}
	return w.tell(h, &HistoryAppend{List: list, MessageRef: n.ID()})
}

// message makes the message of the run's next event.
func (w *Within) message(at Time, role MessageRole, parts []ContentPart) Node {
	return NewNode(&Message{ID: fmt.Sprintf("%s/e%d", w.run, w.h.Events+1), Role: role, Content: fitParts(parts, maxValue), CreatedAt: at})
}

// Note is Say of one structured thing, by a name: a decision, a result, a state.
func (w *Within) Note(list, id, name string, v any, from ...NodeRef) error {
	return w.Say(list, RoleSystem, []ContentPart{{Type: "tool_use", ID: fit(id), Name: name, Input: survives(core.MustEncode(v), maxValue)}}, from...)
}

// Call tells a tool call. of is the task that it is part of, "" for the run's.
func (w *Within) Call(of, server, tool, call string, args core.Raw) error {
	if w.over {
		return nil
	}
	h := w.head()
	if of != "" {
		h.TaskID = of
	}
	h.CorrelationID = fit(call)
	return w.tell(h, &ToolCall{Server: fit(server), Tool: fit(tool), CallID: fit(call), Args: survives(args, maxValue), RequestedBy: w.Newest()})
}

// Result tells what came of a call that is open, and which files it wrote.
func (w *Within) Result(call string, status CallStatus, result core.Raw, fault *Fault, files ...File) error {
	made, open := w.isOpen(fit(call))
	if w.over || !open {
		return nil
	}
	h := w.head()
	h.CorrelationID = fit(call)
	h.files(files, NodeRef{TypeToolCall, made})
	return w.tell(h, &ToolResult{CallID: fit(call), Status: status, Result: survives(result, maxValue), Error: fitFault(fault, status)})
}

// isOpen reports a call without result, and its event.
func (w *Within) isOpen(call string) (event string, open bool) {
	for _, c := range w.h.OpenCalls {
		if c.CallID == call {
			return c.EventID, true
		}
	}
	return "", false
}

// Interrupt tells that the run's open calls are cut off.
func (w *Within) Interrupt(reason Reason, message string) error {
	if w.over {
		return nil
	}
	var affects []EventRef
	for _, c := range append([]OpenCall(nil), w.h.OpenCalls...) {
		affects = append(affects, EventRef{c.EventID})
		if err := w.Result(c.CallID, endOf(reason), nil, &Fault{Code: string(reason), Message: message}); err != nil {
			return err
		}
	}
	return w.tell(w.head(), &Interruption{Reason: reason, Affects: append([]EventRef{}, affects...)})
}

// Finish ends the run, and has nobody find it any more.
func (w *Within) Finish(success bool) error {
	if w.over {
		return w.d.shut(w.tx, w.run, w.h.AgentID, w.h.TaskID)
	}
	if len(w.h.OpenCalls) > 0 {
		if err := w.Interrupt(ReasonCanceled, "the run ended"); err != nil {
			return err
		}
	}
	attempt, _, err := openRuns.Get(w.tx, openKey(ofTask, w.h.TaskID))
	if err != nil {
		return err
	}
	if attempt.ID != w.run {
		attempt.Network = nil
	}
	w.over = true
	if err := w.tell(w.head(), &RunFinished{Exit: exitOf(success), Network: attempt.Network}); err != nil {
		return err
	}
	return w.d.shut(w.tx, w.run, w.h.AgentID, w.h.TaskID)
}

func exitOf(success bool) string {
	if success {
		return "success"
	}
	return "error"
}
