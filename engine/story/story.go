// Package story tells what happened since a time, as one tells somebody who was away:
// a line for each thing that matters, gathered by turn. It is made of what is kept
// anyway: the agents' record, their logs, tasks, approvals, checks and the audit log.
// What it reads is bounded, however much there is.
package story

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// Bounds of a story.
const (
	mostTurns  = 200
	mostEvents = 3000 // of an agent's record
	mostLogged = 1000 // lines of its log
	mostAsked  = 2000 // approvals that are looked at
	mostDone   = 500  // events of the audit log
	mostText   = 300  // bytes of a line
	page       = core.MaxPageSize
)

// Query says whose story is asked for: an agent's, a project's, or with neither the
// tenant's; and since when.
type Query struct {
	Agent   string
	Project string
	Since   time.Time
}

// Line is one thing that happened.
type Line struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // turn begins one, others until the next are of it: said, ran, edited, tests, asked, answered, denied, failed, log; did stands by itself
	Agent  string    `json:"agent,omitempty"`
	TaskID string    `json:"task_id,omitempty"`
	Text   string    `json:"text"`
	Bad    bool      `json:"bad,omitzero"`   // it went wrong
	Times  int       `json:"times,omitzero"` // how many like it this stands for, from 2
	Exit   *int      `json:"rc,omitzero"`    // of a command
	// Added and Removed are lines of a file.
	Added   int `json:"added,omitzero"`
	Removed int `json:"removed,omitzero"`
	// Noun and ID are what tells more: event (of the record), approval, task, agent,
	// audit.
	Noun string `json:"noun,omitempty"`
	ID   string `json:"id,omitempty"`

	like string // what it is folded with, where the line before it has the same
}

// The words of Line.What that others look for.
const (
	Turn   = "turn"
	Edited = "edited"
	Log    = "log"
)

// Begins says that a line begins a turn, or stands by itself.
func (l *Line) Begins() bool { return l.What == Turn || l.What == "did" }

func (l *Line) String() string {
	if l.Times > 1 && l.What == Log {
		return fmt.Sprintf("%d lines, %s", l.Times, l.Text)
	}
	if l.Times > 1 {
		return fmt.Sprintf("%s (the last of %d)", l.Text, l.Times)
	}
	return l.Text
}

// Teller tells stories of what services keep.
type Teller struct {
	DAG   *dag.DAG
	Tasks *task.Table
	Swarm *swarm.Swarm
	Fleet *fleet.Fleet
	Judge *judge.Judge
	Audit *audit.Ledger
	Trees *tree.Trees
}

// Tell is the story, the oldest first. More says that there was more than could be
// looked at: what is missing is older.
func (t *Teller) Tell(ctx context.Context, tenant string, q Query) (lines []Line, more bool, err error) {
	s := &teller{Teller: t, ctx: ctx, tenant: tenant, q: q, turns: map[string]*turn{}, agents: map[string]*fleet.Agent{}}
	if q.Agent != "" {
		a, err := t.Fleet.Agent(ctx, tenant, q.Agent)
		if err != nil {
			return nil, false, err
		}
		s.agents[a.Name] = &a
	} else {
		for _, a := range t.Fleet.Live(tenant) {
			if q.Project == "" || a.Project == q.Project {
				s.agents[a.Name] = a
			}
		}
	}
	parts := []func() error{s.tasks, s.approvals, s.checks, s.deeds}
	if q.Agent != "" {
		parts = []func() error{s.record, s.log, s.tasks, s.approvals, s.checks, s.deeds}
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return nil, false, err
		}
	}
	return s.lines(), s.more, nil
}

// turn is what is told of one task, or of one attempt of it.
type turn struct {
	head  Line
	lines []Line
}

// teller makes one story.
type teller struct {
	*Teller
	ctx    context.Context
	tenant string
	q      Query
	agents map[string]*fleet.Agent
	turns  map[string]*turn // by task
	loose  []Line
	more   bool
}

// tells says whether what an agent did is of the story.
func (s *teller) tells(agent string) bool {
	return s.agents[agent] != nil || s.q.Agent == "" && s.q.Project == ""
}

// of is the turn of a task.
func (s *teller) of(id, agent string, at time.Time) *turn {
	t := s.turns[id]
	if t == nil {
		t = &turn{head: Line{At: at, What: Turn, Agent: agent, TaskID: id, Noun: "task", ID: id}}
		s.turns[id] = t
	}
	if at.Before(t.head.At) {
		t.head.At = at
	}
	return t
}

// add tells a line of a turn, or one that is of none.
func (s *teller) add(l Line) {
	l.Text = core.ClipTo(l.Text, mostText)
	if l.TaskID == "" || !s.tells(l.Agent) {
		s.loose = append(s.loose, l)
		return
	}
	t := s.of(l.TaskID, l.Agent, l.At)
	t.lines = append(t.lines, l)
}

// lines are all of them, turn by turn.
func (s *teller) lines() []Line {
	var tops []*turn
	for _, t := range s.turns {
		core.Sort(t.lines, func(a, b Line) int { return a.At.Compare(b.At) })
		if len(t.lines) > 0 && t.lines[0].What == "told" && strings.HasPrefix(t.head.Text, t.lines[0].Text) {
			t.lines = t.lines[1:] // the task
		}
		t.lines = folded(t.lines)
		tops = append(tops, t)
	}
	for i := range s.loose {
		tops = append(tops, &turn{head: s.loose[i]})
	}
	core.Sort(tops, func(a, b *turn) int {
		return cmp.Or(a.head.At.Compare(b.head.At), strings.Compare(a.head.ID, b.head.ID))
	})
	all := []Line{}
	for _, t := range tops {
		all = append(append(all, t.head), t.lines...)
	}
	return all
}
