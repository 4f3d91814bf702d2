package dag

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// recording are the runs that a recorder has open: run id → nothing.
const recording record.Rows[struct{}] = "dag.live"

// recorded are those runs.
func (r reader) recorded() (runs []string, err error) {
	err = recording.Each(r, nil, func(run record.Parts, _ struct{}) (bool, error) {
		runs = append(runs, string(run))
		return true, nil
	})
	return runs, err
}

// countRecorded counts the runs that were recorded; their ids come of it.
const countRecorded = "dag.recorded"

// writeFor is how long a batch of what is gathered may take until it is on disk.
const writeFor = 10 * time.Second

// Recording is a run that is being told: as it happens, where its events are gathered
// until a commit takes them along (see Record), or within one transaction of what
// happens in it, where they are one chain (see Tell). Its methods may be called from
// any goroutine; they make hostile texts and numbers fit for the record rather than
// lose them. Of a run that is over nothing more is told.
type Recording struct {
	d   *DAG
	by  core.Caller
	run RunInfo
	id  string
	tx  *audit.Tx        // that it is told within, nil for none
	had uint64           // events of it before these, where it is told within one
	now func() time.Time // of the next event

	writing sync.Mutex // one batch at a time, in order

	mu       sync.Mutex
	pending  []Event
	last     time.Time // of the newest event: a run's times never go back
	source   origin    // of the next tool call: what a model answered, else the newest message, or the start
	heard    []NodeRef // what the agent's next words follow from: all since its last
	cause    EventRef  // the newest of it
	spoken   origin    // of the next message of the agent's
	calls    map[string]openCall
	ended    map[string]string // calls that have their result: id → event
	tied     map[string]string // ids that stand for other calls
	early    map[string][]loose
	models   modelTalk
	messages int
	network  []HostUse // of its end
	over     bool      // its end is recorded
	err      error     // the first that lost something
}

// openCall is what is remembered of a call until its result.
type openCall struct {
	event, correlation, server, tool, decided string

	early []loose // decisions that are older than it is in the record
}

// Record begins a run: run_started is on disk when it returns. A run that is
// never finished is closed by Recover after the next start.
func (d *DAG) Record(ctx context.Context, by core.Caller, info RunInfo) (r *Recording, err error) {
	err = d.ledger.Append(ctx, by, func(tx *audit.Tx) error {
		run, start, err := d.start(tx, &info, true)
		if err != nil {
			return err
		}
		r = newRecording(run, info, tx.Now(), d.ledger.Clock().Now)
		r.d, r.by = d, by
		r.began(start)
		return recording.Put(tx, record.Key(run), struct{}{})
	})
	return r, audit.Explain("begin to record a run", err)
}

func newRecording(id string, info RunInfo, last time.Time, now func() time.Time) *Recording {
	return &Recording{id: id, run: info, last: last, now: now, calls: map[string]openCall{}, ended: map[string]string{}}
}

// began notes the event that what is told next follows from.
func (r *Recording) began(event string) {
	r.cause = EventRef{event}
	r.source.event = r.cause
}

// RunID is the run's id.
func (r *Recording) RunID() string { return r.id }

// head is the head of the next event; mu is held, or nobody else knows of r.
func (r *Recording) head() Head {
	if now := r.now(); now.After(r.last) {
		r.last = now
	}
	h := r.run.head(r.id)
	h.TS, h.Parent = At(r.last), nil
	if r.cause.EventID != "" {
		h.Parent = &EventRef{r.cause.EventID}
	}
	return h
}

// hear notes what the agent's next words follow from.
func (r *Recording) hear(e EventRef, n NodeRef) {
	r.cause = e
	if r.heard = append(r.heard, n); len(r.heard) > maxHeard {
		r.heard = r.heard[1:]
	}
}

// maxHeard bounds what one message is said to follow from: the newest.
const maxHeard = 200

// add gathers an event; mu is held.
func (r *Recording) add(h Head, b Body) (Event, bool) {
	if r.over {
		return Event{}, false
	}
	e, err := NewEvent(h, b)
	if err != nil {
		r.lost(fmt.Errorf("record a %s: %w", b.Kind(), err))
		return e, false
	}
	r.pending = append(r.pending, e)
	if r.tx != nil {
		r.began(e.EventID)
	}
	return e, true
}

func (r *Recording) lost(err error) {
	if r.err == nil {
		r.err = err
	}
}

// ListMain is the list of a run's conversation, ListUsage that of what it spent.
const (
	ListMain  = "main"
	ListUsage = "usage"
)

// Said records a message of a list, as text.
func (r *Recording) Said(list string, role MessageRole, text string) {
	r.Message(list, role, ContentPart{Type: "text", Text: text})
}

// Note records a message of a list that is one structured thing, by a name: a
// decision, a result, a state.
func (r *Recording) Note(list string, role MessageRole, id, name string, v any) {
	raw, is := v.(core.Raw)
	if !is {
		raw = core.MustEncode(v)
	}
	r.Message(list, role, ContentPart{Type: "tool_use", ID: fit(id), Name: fit(name), Input: survives(raw, maxValue)})
}

// Message records a message of a list. Text that does not fit into an event is cut.
func (r *Recording) Message(list string, role MessageRole, parts ...ContentPart) {
	left := maxValue
	for i := range parts {
		parts[i].Text = clip(parts[i].Text, left)
		left = max(0, left-len(parts[i].Text))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.head()
	m := r.message(h.TS, role, parts)
	h.Nodes = []Node{m}
	if role == RoleAssistant && r.spoken.correlation != "" {
		h.CorrelationID = r.spoken.correlation
	}
	talk := list == ListMain && !slices.ContainsFunc(parts, func(p ContentPart) bool { return p.Type == "reasoning" })
	if talk && role == RoleAssistant {
		for _, n := range r.heard {
			h.Edges = append(h.Edges, Edge{Type: DerivedFrom, From: m.Ref(), To: n})
		}
	}
	e, ok := r.add(h, &HistoryAppend{List: list, MessageRef: m.ID()})
	if !ok {
		return
	}
	if r.source.correlation == "" {
		r.source.event = EventRef{e.EventID}
	}
	if list == ListDecisions {
		r.cause = EventRef{e.EventID}
	}
	if talk {
		if role == RoleAssistant {
			r.heard = nil
		}
		r.hear(EventRef{e.EventID}, m.Ref())
	}
}

// message makes the run's next message; mu is held.
func (r *Recording) message(at Time, role MessageRole, parts []ContentPart) Node {
	r.messages++
	return NewNode(&Message{ID: r.messageID(), Role: role, Content: parts, CreatedAt: at})
}

// messageID is the run's newest message.
func (r *Recording) messageID() string {
	if r.tx != nil { // which does not know how many there were
		return fmt.Sprintf("%s/e%d", r.id, r.had+uint64(len(r.pending))+1)
	}
	return fmt.Sprintf("%s/%d", r.id, r.messages)
}

// Call records a tool call. One that has not had its effect yet is to be on disk
// before it has: see Along. of is the task that it is part of, "" for the run's.
func (r *Recording) Call(of, server, tool, call string, args core.Raw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call(of, server, tool, fit(call), args)
}

func (r *Recording) call(of, server, tool, call string, args core.Raw) (Event, bool) {
	h := r.head()
	h.TaskID = cmp.Or(of, h.TaskID)
	if h.CorrelationID = r.source.correlation; r.tx != nil {
		h.CorrelationID = call
	}
	server, tool = fit(server), fit(tool)
	e, ok := r.add(h, &ToolCall{Server: server, Tool: tool, CallID: call, Args: survives(args, maxValue), RequestedBy: r.source.event})
	if ok {
		r.calls[call] = openCall{event: e.EventID, correlation: h.CorrelationID, server: server, tool: tool, decided: r.calls[call].decided}
		delete(r.ended, call) // an id may be used again
	}
	return e, ok
}

// Open reports whether a call has no result yet; "" stands for any, and for any request
// to a model.
func (r *Recording) Open(call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if call == "" {
		return len(r.calls) > 0 || len(r.models.open) > 0
	}
	_, open := r.calls[fit(call)]
	return open
}

// Known reports whether a call is open or has its result.
func (r *Recording) Known(call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, open := r.calls[fit(call)]
	return open || r.ended[fit(call)] != ""
}

// Substitute records that a call is carried out with other arguments: a second
// call of the same id that stands in for the first.
func (r *Recording) Substitute(ctx context.Context, call string, args core.Raw, reason string) error {
	call = fit(call)
	r.mu.Lock()
	if old, open := r.calls[call]; open {
		if e, ok := r.call("", old.server, old.tool, call, args); ok && e.EventID != old.event {
			r.add(r.head(), &Substitution{OriginalEvent: EventRef{old.event}, ReplacementEvent: EventRef{e.EventID}, Reason: clip(reason, maxReason)})
		}
	}
	r.mu.Unlock()
	return r.Flush(ctx)
}

// Result records what came of a call, once, and which files it wrote: what is said of it
// later is of one that was cut off or denied. A call that was never recorded is recorded
// with it as far as is known, where the run is recorded as it happens.
func (r *Recording) Result(call string, status CallStatus, result core.Raw, fault *Fault, files ...File) {
	call = fit(call)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.calls[call]; !open {
		if r.ended[call] != "" || r.tx != nil {
			return
		}
		r.call("", "unknown", "unknown", call, nil)
	}
	r.result(call, status, result, fault, files...)
}

func (r *Recording) result(call string, status CallStatus, result core.Raw, fault *Fault, files ...File) {
	h, of := r.head(), r.calls[call]
	h.CorrelationID = of.correlation
	if r.tx == nil { // else the one chain leads to it
		h.Parent = nil
	}
	if of.decided != "" {
		h.Parent = &EventRef{of.decided}
	}
	for _, d := range of.early {
		h.Edges = append(h.Edges, Edge{Type: DerivedFrom, From: d.message, To: NodeRef{TypeToolCall, of.event}})
	}
	h.files(files, NodeRef{TypeToolCall, of.event})
	if e, ok := r.add(h, &ToolResult{CallID: call, Status: status, Result: survives(result, maxValue), Error: fitFault(fault, status)}); ok {
		r.hear(EventRef{e.EventID}, NodeRef{TypeToolResult, e.EventID})
	}
	if len(r.ended) < maxEnded {
		r.ended[call] = cmp.Or(of.event, call)
	}
	delete(r.calls, call)
}

// maxEnded bounds the calls of a run of which it is known that they have a result.
const maxEnded = 100_000

// Interrupt records that work was cut off: the named call, or all calls and
// requests to models that are open when there is none. Each ends as
// interrupted, or canceled for a reason that is no failure.
func (r *Recording) Interrupt(ctx context.Context, reason Reason, call string) error {
	r.mu.Lock()
	r.interrupt(reason, call, "the call was cut off")
	r.mu.Unlock()
	return r.Flush(ctx)
}

func (r *Recording) interrupt(reason Reason, only, message string) {
	var affects []EventRef
	for _, id := range slices.Sorted(maps.Keys(r.calls)) {
		if only == "" || fit(only) == id {
			affects = append(affects, EventRef{r.calls[id].event})
			r.result(id, endOf(reason), nil, &Fault{Code: string(reason), Message: message})
		}
	}
	if only == "" {
		affects = append(affects, r.hangUp(endOf(reason), &Fault{Code: string(reason), Message: message})...)
	}
	r.interrupted(reason, affects)
}

// interrupted records what was cut off; of very much in parts.
func (r *Recording) interrupted(reason Reason, affects []EventRef) {
	for len(affects) > maxRefs {
		r.add(r.head(), &Interruption{Reason: reason, Affects: affects[:maxRefs]})
		affects = affects[maxRefs:]
	}
	r.add(r.head(), &Interruption{Reason: reason, Affects: append([]EventRef{}, affects...)})
}

// endOf is how a call ends that is cut off.
func endOf(reason Reason) CallStatus {
	switch reason {
	case ReasonTimeout:
		return CallTimeout
	case ReasonApprovalDenied, ReasonCanceled:
		return CallCanceled
	}
	return CallInterrupted
}

// Network says what went between the run's processes and each host, which its end
// tells.
func (r *Recording) Network(use []HostUse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.network = use
}

// Rest is what there is to tell of the run until its task says what it came to: all of
// it is on disk then, what is open is interrupted, and Attempt finds the run. It returns
// the first error that lost something of it.
func (r *Recording) Rest(ctx context.Context) error {
	r.mu.Lock()
	r.settle()
	r.over = true
	r.mu.Unlock()
	return r.flush(ctx, true)
}

// settle ends what is open; mu is held.
func (r *Recording) settle() {
	if len(r.calls) > 0 || len(r.models.open) > 0 {
		r.interrupt(ReasonCanceled, "", "the run ended")
	}
}

// Finish ends a run that is told within a transaction, and has nobody find it any more.
func (r *Recording) Finish(success bool) {
	attempt, _, err := openRuns.Get(r.tx, openKey(ofTask, r.run.TaskID))
	if err == nil {
		err = r.d.shut(r.tx, r.id, r.run.AgentID, r.run.TaskID)
	}
	if err != nil {
		r.lost(err)
	}
	if attempt.ID != r.id {
		attempt.Network = nil
	}
	r.finish(success, attempt.Network)
}

func (r *Recording) finish(success bool, network []HostUse) {
	r.settle()
	exit := "error"
	if success {
		exit = "success"
	}
	r.add(r.head(), &RunFinished{Exit: exit, Network: network})
	r.over = true
}
