package dag

import (
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// State is what was so right after an event: of its run, and of the agent,
// task and session that it belongs to.
type State struct {
	EventID string      `json:"event_id"`
	Pos     uint64      `json:"pos"`
	Seq     uint64      `json:"seq"`
	TS      Time        `json:"ts"`
	Run     *RunState   `json:"run,omitzero"` // the event's stream
	Agent   *GroupState `json:"agent,omitzero"`
	Task    *GroupState `json:"task,omitzero"`
	Session *GroupState `json:"session,omitzero"`
	Mounts  []Mount     `json:"mounts"` // what the run and agent had, 100 at most
	Policy  string      `json:"policy_ref,omitempty"`
	// Messages are the newest of the run, in their order: 20 at most, of its last
	// 200 events.
	Messages []Message `json:"messages"`
}

// GroupState is what the events of an agent, task or session up to one of them
// come to: its newest runs as they stood.
type GroupState struct {
	ID     string     `json:"id"`
	Events uint64     `json:"events"`
	Runs   []RunState `json:"runs"` // the newest 20 streams, the one of the newest event first
}

// Bounds of a state.
const (
	maxRuns     = 20
	maxBack     = 200 // events of a group looked back for its streams
	maxMounts   = 100
	maxMessages = 20
)

// At is the state as of an event. It reads the nearest kept state of each
// stream and folds on from there, so it costs the same however long a run is.
func (d *DAG) At(ctx context.Context, tenant, id string) (State, error) {
	var s State
	err := d.view(ctx, tenant, "read a state", func(r reader) error {
		e, err := r.detail(id)
		if err != nil {
			return err
		}
		s, err = r.stateAt(e.Recorded)
		return err
	})
	return s, audit.Explain(fmt.Sprintf("read the state as of %s", core.Clip(id)), err)
}

func (r reader) stateAt(e Recorded) (State, error) {
	s := State{EventID: e.Event.EventID, Pos: e.Pos, Seq: e.Seq, TS: e.Event.TS, Mounts: []Mount{}, Messages: []Message{}}
	w, err := r.row(e.Pos)
	if err != nil {
		return s, err
	}
	run, err := r.runAt(w.stream, e.Seq)
	if err != nil {
		return s, err
	}
	s.Run = &run
	for _, g := range []struct {
		class byte
		id    string
		to    **GroupState
	}{{typeCode(TypeAgent), run.AgentID, &s.Agent}, {nameTask, run.TaskID, &s.Task}, {nameSession, run.SessionID, &s.Session}} {
		if g.id == "" {
			continue
		}
		if *g.to, err = r.groupAt(g.class, g.id, e.Pos, w, run); err != nil {
			return s, err
		}
	}
	if err := r.mountsOf(&s, run); err != nil {
		return s, err
	}
	if err := r.policyAt(&s); err != nil {
		return s, err
	}
	s.Messages, err = r.messagesAt(w.stream, e.Seq)
	return s, err
}

// runAt is a stream's state as of one of its events.
func (r reader) runAt(stream, seq uint64) (RunState, error) {
	var s RunState
	next, err := streams.Data(r, record.Seq(stream).Seq(seq+1))
	if err != nil {
		return s, fmt.Errorf("look after event %d of a stream: %w", seq, err)
	}
	if next == nil { // as it is now
		h, err := r.head(stream)
		return h.RunState, err
	}
	if from := seq / markEvery * markEvery; from > 0 {
		if s, _, err = marks.Get(r, record.Seq(stream).Seq(from)); err != nil {
			return s, err
		}
	}
	l := listed{streams, record.Seq(stream), seq}
	err = r.rows(l, true, s.Events, markEvery, func(w row) error {
		e, err := w.folded()
		if err == nil {
			s.fold(&e)
		}
		return err
	})
	return s, err
}

// groupAt finds the streams in which a group's newest events up to a pos are.
// One of them is known already.
func (r reader) groupAt(class byte, id string, pos uint64, known row, run RunState) (*GroupState, error) {
	l, err := r.of(class, id)
	if err != nil {
		return nil, err
	}
	n, err := r.upto(l, pos)
	if err != nil {
		return nil, err
	}
	g := &GroupState{ID: id, Events: n, Runs: []RunState{}}
	seen := map[uint64]bool{}
	for i := n; i > 0 && i+maxBack > n && len(g.Runs) < maxRuns; i-- {
		at, err := r.entry(l, i)
		if err != nil {
			return nil, err
		}
		w, err := r.row(at)
		if err != nil {
			return nil, err
		}
		if seen[w.stream] {
			continue
		}
		seen[w.stream] = true
		s := run
		if w.stream != known.stream || w.seq != known.seq {
			if s, err = r.runAt(w.stream, w.seq); err != nil {
				return nil, err
			}
		}
		g.Runs = append(g.Runs, s)
	}
	return g, nil
}

// mountsOf lists what the run and the agent had at the event, as far as was
// known by then.
func (r reader) mountsOf(s *State, run RunState) error {
	for _, holder := range []NodeRef{{TypeRun, run.RunID}, {TypeAgent, run.AgentID}} {
		if holder.ID == "" {
			continue
		}
		num, _, err := r.num(nameKey(holder))
		if err != nil {
			return err
		}
		rows, t := outEdges, MountsResource
		if holder.Type == TypeAgent {
			rows, t = inEdges, AttachedTo
		}
		looked := 0
		err = rows.Within(r, record.Seq(num).Byte(relationCode(t)), nil, record.Seq(s.Pos+1), true, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
			_, m, err := r.mount(rest.Seq(), int(rest.Short()))
			if err != nil {
				return false, err
			}
			if m.Until.IsZero() || m.Until.at.After(s.TS.at) {
				s.Mounts = append(s.Mounts, m)
			}
			looked++
			return looked < maxBack && len(s.Mounts) < maxMounts, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r reader) policyAt(s *State) error {
	id, err := r.activePolicy(s.Pos + 1)
	if err != nil || id == "" {
		return err
	}
	e, err := r.detail(id)
	if err == nil {
		s.Policy = e.Event.Body.(*PolicyActivated).PolicyRef
	}
	return err
}

// messagesAt are the newest messages of a stream's history up to a seq.
func (r reader) messagesAt(stream, seq uint64) ([]Message, error) {
	all := []Message{}
	l := listed{streams, record.Seq(stream), seq}
	for i := seq; i > 0 && i+maxBack > seq && len(all) < maxMessages; i-- {
		v, err := l.rows.Data(r, l.at(i))
		if err != nil {
			return nil, err
		}
		if len(v) < 9 || v[8] != KindHistoryAppend.code() {
			continue
		}
		e, err := r.event(record.LastSeq(v[:8]))
		if err != nil {
			return nil, err
		}
		if m, err := r.message(&e.Event, e.Event.Body.(*HistoryAppend).MessageRef); err != nil {
			return nil, err
		} else if m != nil {
			all = append(all, *m)
		}
	}
	slices.Reverse(all)
	return all, nil
}
