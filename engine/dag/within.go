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
	run, _, err = d.start(tx, &info, attempt, nodes...)
	return run, err
}

func (d *DAG) start(tx *audit.Tx, info *RunInfo, attempt bool, nodes ...Node) (run, event string, err error) {
	info.AgentID, info.TaskID, info.SessionID = fit(info.AgentID), fit(info.TaskID), fit(info.SessionID)
	run = core.NewUUID(tx.Tenant(), uint64(tx.Add(countRecorded, 1)), nil)
	if err := d.open(tx, run, *info, attempt); err != nil {
		return "", "", err
	}
	if err := (reader{tx}).cause(info); err != nil {
		return "", "", err
	}
	h := info.head(run)
	h.TS, h.Nodes = At(tx.Now()), nodes
	e, err := NewEvent(h, info.started())
	if err == nil {
		_, err = d.ObserveIn(tx, e)
	}
	return run, e.EventID, err
}

// Tell tells something of a run within a transaction; nothing where there is none. An
// event that does not agree with what others emitted into the run costs itself alone.
func (d *DAG) Tell(tx *audit.Tx, run string, what func(*Recording)) error {
	if run == "" {
		return nil
	}
	r, err := d.resume(tx, run)
	if err == nil {
		what(r)
		err = r.err
	}
	if err == nil {
		_, _, err = d.observe(tx, true, r.pending)
	}
	if err != nil {
		return fmt.Errorf("record run %s: %w", run, err)
	}
	return nil
}

// resume is a run as a transaction has it.
func (d *DAG) resume(tx *audit.Tx, run string) (*Recording, error) {
	num, h, err := reader{tx}.run(run)
	r := newRecording(run, RunInfo{AgentID: h.AgentID, TaskID: h.TaskID, SessionID: h.SessionID, TraceID: h.TraceID}, h.LastAt.at, tx.Now)
	r.d, r.tx, r.had, r.over = d, tx, h.Events, h.Events == 0 || h.Status == "finished"
	r.began(h.Head)
	if err != nil || r.over {
		return r, err
	}
	open, err := reader{tx}.openCalls(num, h)
	for _, c := range open {
		r.calls[c.CallID] = openCall{event: c.EventID, correlation: c.CallID, server: c.Server, tool: c.Tool}
	}
	r.models.begin()
	for _, m := range h.OpenModels {
		r.models.open[m.EventID] = openModel{id: m.EventID, correlation: m.CorrelationID, at: m.TS.at}
	}
	return r, err
}

// RunInfo says whose run is recorded.
type RunInfo struct {
	AgentID   string
	TaskID    string
	SessionID string
	TraceID   string
	Reason    string // user, schedule, subagent
	AskedBy   string // who asked for it
	AskedKind string // what that is: operator, agent …
	Attempt   int    // of the task
	// ParentTask is the task that this one is part of.
	ParentTask string
	Parent     string // the event that led to it; "" has it found

	correlation string // of its first event
}

// started is how a run begins.
func (i *RunInfo) started() *RunStarted {
	return &RunStarted{Reason: i.Reason, AskedBy: fit(i.AskedBy), AskedKind: fit(i.AskedKind), Attempt: int64(i.Attempt)}
}

// head is what the events of a run have; the first one's parent led to it.
func (i *RunInfo) head(run string) Head {
	h := Head{RunID: run, AgentID: i.AgentID, TaskID: i.TaskID, SessionID: i.SessionID, TraceID: fit(i.TraceID), CorrelationID: i.correlation}
	if IsEventID(i.Parent) {
		h.Parent = &EventRef{i.Parent}
	}
	return h
}

// NotifyIn records notices of an MCP server (*MCPResourceUpdated,
// *MCPListChanged) in the transaction that they tell of, in each recorded run
// that goes on.
func (d *DAG) NotifyIn(tx *audit.Tx, notices ...Body) error {
	if len(notices) == 0 {
		return nil
	}
	live, err := reader{tx}.recorded()
	for _, run := range live {
		if err != nil {
			break
		}
		err = d.Tell(tx, run, func(r *Recording) {
			h := r.head()
			h.Parent = nil // no work of the run's led to it
			for _, b := range notices {
				r.add(h, b)
			}
		})
	}
	return err
}
