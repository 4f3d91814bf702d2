package dag

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
)

// Comparison is how what two runs, tasks or agents did differs: what was said and
// called, side by side, which files changed, and what it took.
type Comparison struct {
	A     Side           `json:"a"`
	B     Side           `json:"b"`
	Steps []ComparedStep `json:"steps"`
	Files []ComparedFile `json:"files,omitempty"`
}

// Side is one of the two.
type Side struct {
	Subject  string     `json:"subject"` // as it was asked for
	AgentID  string     `json:"agent_id,omitempty"`
	Tasks    []string   `json:"tasks,omitempty"` // the first 100
	Since    string     `json:"since,omitempty"` // what comes after this event is compared: the other goes on from there
	Exit     string     `json:"exit,omitempty"`  // of its newest run that is over
	Events   int64      `json:"events"`
	Messages int64      `json:"messages"`
	Calls    int64      `json:"calls"`
	Failed   int64      `json:"calls_failed"`
	Requests int64      `json:"model_requests"`
	Usage    Usage      `json:"usage"`
	Started  Time       `json:"started_at,omitzero"`
	Last     Time       `json:"last_at,omitzero"`
	More     bool       `json:"more,omitzero"` // events after the first 10,000, which are not compared
	Spent    *SideSpent `json:"spent,omitzero"`
}

// SideSpent is what its tasks were billed, whoever counted it.
type SideSpent struct {
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
}

// Ops of a step or a file.
const (
	Same    = "same"
	Changed = "changed"
	OnlyA   = "a"
	OnlyB   = "b"
)

// ComparedStep is a message or a call of one side, or of both.
type ComparedStep struct {
	Op   string `json:"op"`   // same, changed, a, b
	Kind string `json:"kind"` // message, call
	A    *Act   `json:"a,omitzero"`
	B    *Act   `json:"b,omitzero"`
}

// Act is what was said or called, as one side made it.
type Act struct {
	EventID string `json:"event_id"`
	Text    string `json:"text"` // who said what; or the tool and its arguments
	Result  string `json:"result,omitempty"`
	tool    string
	file    string
}

// ComparedFile is a file that a side changed, as far as diffs in the record tell.
type ComparedFile struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	A    string `json:"a,omitempty"` // lines that came in and went out: +3 -1; changed where there is no diff
	B    string `json:"b,omitempty"`
	// DiffA and DiffB are the hunks of the diffs, one after the other; "" where there are
	// none.
	DiffA string `json:"-"`
	DiffB string `json:"-"`
}

// Bounds of a comparison.
const (
	maxCompared     = 10_000 // events of a side
	maxComparedText = 8 << 10
	maxComparedIDs  = 100
	listDiff        = "diff"
)

// Compare holds what two subjects did against each other: each is run:ID, task:ID,
// agent:NAME, session:ID, or the bare name of an agent for its newest run. When one
// is a fork of the other's agent, what the other did before the fork is left out.
func (d *DAG) Compare(ctx context.Context, tenant, a, b string) (Comparison, error) {
	var c Comparison
	var sides [2]sideReader
	for i, subject := range []string{a, b} {
		s := &sides[i]
		s.Subject = subject
		if err := d.Subject(ctx, tenant, subject, &s.q); err != nil {
			return c, err
		}
		err := d.view(ctx, tenant, "compare with "+subject, func(r reader) error { return s.find(r) })
		if err != nil {
			return c, err
		}
	}
	err := d.view(ctx, tenant, "compare", func(r reader) error {
		for i := range sides {
			if err := sides[i].parted(r, &sides[1-i]); err != nil {
				return err
			}
		}
		for i := range sides {
			if err := sides[i].read(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
	c.A, c.B, c.Steps, c.Files = sides[0].Side, sides[1].Side, align(sides[0].steps, sides[1].steps), alignFiles(sides[0].files, sides[1].files)
	return c, err
}

// sideReader reads one side.
type sideReader struct {
	Side
	q     Query
	l     listed
	after uint64 // events up to this pos are left out
	steps []Act
	files []Act          // diffs in their order, file is the path
	open  map[string]int // step of an open call
}

// find finds the events of a side; it is an error when there is none.
func (s *sideReader) find(r reader) error {
	all, err := r.lists(&s.q)
	if err != nil {
		return err
	}
	if s.l = all[0]; s.l.n == 0 {
		return core.Missing("record", s.Subject)
	}
	return r.walk(s.l, true, 0, 1, func(e Recorded) error {
		s.AgentID = e.Event.AgentID
		return nil
	})
}

// parted leaves out what a side did before the other's agent was forked from its
// own.
func (s *sideReader) parted(r reader, other *sideReader) error {
	if s.AgentID == "" || other.AgentID == "" || s.AgentID == other.AgentID {
		return nil
	}
	above, _, err := r.parents(NodeRef{TypeAgent, other.AgentID}, 1)
	if err != nil {
		return err
	}
	for _, from := range above {
		if from.Node != (NodeRef{TypeAgent, s.AgentID}) || from.Edge != ForkedFrom {
			continue
		}
		for _, at := range above {
			if at.EventID != from.EventID || !at.Node.Type.ofEvent() {
				continue
			}
			_, pos, err := r.place(at.Node.ID)
			if err == nil && pos > 0 {
				s.after, s.Since = pos, at.Node.ID
			}
			return err
		}
	}
	return nil
}

func (s *sideReader) read(ctx context.Context, r reader) error {
	skip := uint64(0)
	if s.after > 0 {
		var err error
		if skip, err = r.upto(s.l, s.after); err != nil {
			return err
		}
	}
	s.open = map[string]int{}
	s.More = s.l.n-skip > maxCompared
	return r.walk(s.l, true, skip, maxCompared, func(e Recorded) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.take(r, &e)
	})
}

func (s *sideReader) take(r reader, rec *Recorded) error {
	e := &rec.Event
	if s.Events++; s.Events == 1 {
		s.Started = e.TS
	}
	s.Last = e.TS
	if id := e.TaskID; id != "" && len(s.Tasks) < maxComparedIDs && !slices.Contains(s.Tasks, id) {
		s.Tasks = append(s.Tasks, id)
	}
	for _, path := range e.files() {
		s.files = append(s.files, Act{file: path})
	}
	switch b := e.Body.(type) {
	case *HistoryAppend:
		return s.said(r, e, b)
	case *ModelRequest:
		s.Requests++
	case *ModelResponse:
		s.Usage.add(b.Usage)
	case *ToolCall:
		s.Calls++
		s.open[e.RunID+"\x00"+b.CallID] = len(s.steps)
		s.steps = append(s.steps, Act{EventID: e.EventID, tool: b.Server + " " + b.Tool, Text: clipped(b.Tool+" "+string(b.Args), maxComparedText)})
	case *ToolResult:
		if b.Status != CallOK {
			s.Failed++
		}
		key := e.RunID + "\x00" + b.CallID
		if i, ok := s.open[key]; ok {
			s.steps[i].Result = clipped(string(b.Status)+" "+string(b.Result)+b.Error.brief(), maxComparedText)
			delete(s.open, key)
		}
	case *RunFinished:
		s.Exit = b.Exit
	}
	return nil
}

func (s *sideReader) said(r reader, e *Event, b *HistoryAppend) error {
	if b.List != ListMain && b.List != listDiff {
		return nil
	}
	m, err := r.message(e, b.MessageRef)
	if err != nil || m == nil {
		return err
	}
	text := clipped(m.Text(), maxComparedText)
	if b.List == listDiff {
		path, changes, _ := strings.Cut(m.Text(), "\n")
		if named := e.files(); len(named) > 0 {
			path = named[0]
		}
		s.files = append(s.files, Act{file: path, Text: changes + "\n"})
		return nil
	}
	s.Messages++
	s.steps = append(s.steps, Act{EventID: e.EventID, Text: string(m.Role) + ": " + text})
	return nil
}

// files are the paths of the files that an event says were written.
func (e *Event) files() (paths []string) {
	for _, n := range e.Nodes {
		if f, is := n.Body.(*Resource); is && f.ID == FileID(f.Name) {
			paths = append(paths, f.Name)
		}
	}
	return paths
}

// add sums what answers took.
func (u *Usage) add(more *Usage) {
	if more != nil {
		u.PromptTokens += more.PromptTokens
		u.CompletionTokens += more.CompletionTokens
		u.TotalTokens += more.TotalTokens
		u.CachedTokens += more.CachedTokens
	}
}

// align puts steps side by side: those that say or call the same, and between
// them those of a kind, one against the other.
func align(a, b []Act) []ComparedStep {
	keys := func(all []Act) []string {
		return core.Map(all, func(a Act) string { return a.tool + "\x00" + a.Text })
	}
	out := []ComparedStep{}
	var before, after []Act // that differ, since the last that is the same
	flush := func() {
		for len(before) > 0 || len(after) > 0 {
			switch {
			case len(before) > 0 && len(after) > 0 && before[0].tool == after[0].tool:
				out = append(out, compared(Changed, &before[0], &after[0]))
				before, after = before[1:], after[1:]
			case len(before) > 0:
				out = append(out, compared(OnlyA, &before[0], nil))
				before = before[1:]
			default:
				out = append(out, compared(OnlyB, nil, &after[0]))
				after = after[1:]
			}
		}
	}
	i, j := 0, 0
	for _, e := range diff.Lines(keys(a), keys(b)) {
		switch e.Sign {
		case '-':
			before = append(before, a[i])
			i++
		case '+':
			after = append(after, b[j])
			j++
		default:
			flush()
			op := Same
			if a[i].Result != b[j].Result {
				op = Changed
			}
			out = append(out, compared(op, &a[i], &b[j]))
			i, j = i+1, j+1
		}
	}
	flush()
	return out
}

func compared(op string, a, b *Act) ComparedStep {
	s := ComparedStep{Op: op, Kind: "message"}
	if a != nil {
		own := *a
		s.A = &own
	}
	if b != nil {
		own := *b
		s.B = &own
	}
	if a != nil && a.tool != "" || b != nil && b.tool != "" {
		s.Kind = "call"
	}
	return s
}

// alignFiles lists the files that either side changed, in the order of their
// first change.
func alignFiles(a, b []Act) (all []ComparedFile) {
	at := map[string]int{}
	texts := [2]map[string]string{{}, {}}
	for side, diffs := range [][]Act{a, b} {
		for i := range diffs {
			d := &diffs[i]
			if _, known := at[d.file]; !known {
				at[d.file] = len(all)
				all = append(all, ComparedFile{Path: clipped(d.file, maxURI)})
			}
			texts[side][d.file] += d.Text
		}
	}
	for path, i := range at {
		f := &all[i]
		before, inA := texts[0][path]
		after, inB := texts[1][path]
		f.A, f.B, f.DiffA, f.DiffB = changedLines(before), changedLines(after), before, after
		switch {
		case !inB:
			f.Op, f.B = OnlyA, ""
		case !inA:
			f.Op, f.A = OnlyB, ""
		case before == after && before != "":
			f.Op = Same
		default:
			f.Op = Changed
		}
	}
	return all
}

// changedLines counts the lines of diffs that come in and go out.
func changedLines(text string) string {
	in, out := 0, 0
	for line := range strings.Lines(text) {
		switch line[0] {
		case '+':
			in++
		case '-':
			out++
		}
	}
	if text == "" {
		return Changed
	}
	return fmt.Sprintf("+%d -%d", in, out)
}
