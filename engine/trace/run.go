package trace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// run is an attempt of a prompt. It is recorded, with the files that change meanwhile, and
// the states of what its agent works on are kept before each tool call, so that a fork
// finds them as they were. The errors of single events are kept by the recording, which
// returns them at its end.
type run struct {
	r             *Recorder
	rec           *dag.Recording
	tenant, agent string
	server        string // of its tool calls: the runtime
	task          string
	tally         *egress.Tally

	looking sync.Mutex // at the disk, one at a time
	watch   watch

	life context.Context // of what is kept: until its end
	stop context.CancelFunc

	mu    sync.Mutex
	calls []call // that may be having their effect, oldest first
	doors doors
	kept  chan struct{} // closed when all states so far are kept, or will not be; nil before the first
	left  bool          // states of its tree are not taken any more
	err   error         // what was not kept
}

// call is one whose result is not known yet.
type call struct {
	id     string
	acting bool   // it is carried out
	text   string // in which its agent tells of it; "" of one that is tied to a door's
}

// maxCalls bounds the calls that are remembered of a run.
const maxCalls = 1000

// Began implements fleet.Observer. Without the states a run is recorded all
// the same: what is lacking is told at its end.
func (r *Recorder) Began(ctx context.Context, a fleet.Agent, t task.Task, message string) (fleet.Observed, error) {
	lacking := errors.Join(r.Resources.Begin(ctx, t.TenantID, a.Name), r.Trees.Mark(ctx, t.TenantID, a.Name, tree.MarkTask+t.TaskID))
	rec, err := r.DAG.Record(ctx, by(t.TenantID), infoOf(a.Name, &t))
	if err != nil {
		return nil, err
	}
	var let decided
	err = r.Ledger.View(ctx, t.TenantID, func(tx *audit.Tx) error {
		let, err = r.letStart(tx, &t)
		return err
	})
	if err != nil {
		return nil, err
	}
	decide(rec, t.TaskID, let)
	rec.Said(dag.ListMain, dag.RoleUser, message)
	o := &run{
		r: r, rec: rec, tenant: t.TenantID, agent: a.Name, server: cmp.Or(a.Runtime, "agent"), task: t.TaskID,
		tally: r.Egress.Tally(t.TenantID, a.Name, t.TaskID), watch: r.watch(ctx, t.TenantID, a.Name), err: lacking,
	}
	o.life, o.stop = context.WithCancel(context.WithoutCancel(ctx))
	return o, nil
}

// Event implements fleet.Observed.
func (o *run) Event(ctx context.Context, e fleet.Event) {
	rec, id := o.rec, callOf(e)
	switch e.Type {
	case "message", "result":
		if e.Text != "" {
			rec.Said(dag.ListMain, dag.RoleAssistant, e.Text)
		}
	case "prompt":
		rec.Said(dag.ListMain, dag.RoleUser, e.Text)
	case "thought":
		rec.Message(dag.ListMain, dag.RoleAssistant, dag.ContentPart{Type: "reasoning", Text: e.Text})
	case "plan":
		rec.Said(listPlan, dag.RoleAssistant, e.Text)
	case "diff":
		rec.Wrote(e.CallID, e.Path, e.Text)
	case "mode":
		rec.Said(listMode, dag.RoleSystem, e.Text)
	case "attention":
		rec.Said(listAttention, dag.RoleAssistant, e.Text)
	case "model_request":
		_ = rec.Asked(ctx, id, modelAsk(e))
	case "model_response": // it may tell that the run is being ended
		_ = rec.Answered(ctx, id, modelAnswer(e))
	case "usage":
		if e.Tokens > 0 || e.CostUSD > 0 || e.Split != (fleet.Split{}) {
			rec.Note(dag.ListUsage, dag.RoleSystem, "usage", "usage", usage{e.Tokens, e.CostUSD, e.Split, e.Context})
		}
	case "tool_request": // one that had begun, as it seemed, asks now
		o.begins(ctx, e, !rec.Open(id))
	case "tool_call": // it was not asked for, and may have begun
		o.begins(ctx, e, !rec.Known(id))
		o.wrote(ctx)
		o.acts(id)
	case "tool_result":
		var also []string
		if e.Tool != "" && !rec.Known(id) { // nobody asked about it, and all is told of it at once
			o.call(e)
			also = []string{id}
		}
		status, fault := dag.CallOK, (*dag.Fault)(nil)
		if e.Status != "ok" {
			status, fault = dag.CallError, &dag.Fault{Code: cmp.Or(e.Status, "error"), Message: e.Error}
		}
		rec.Result(id, status, e.Output, fault)
		o.wrote(ctx, also...)
		o.ends(id)
	}
}

// usage is what the record says of what a run spent since the last.
type usage struct {
	Tokens  int64   `json:"tokens,omitzero"`
	CostUSD float64 `json:"cost_usd,omitzero"`
	fleet.Split
	Context fleet.Context `json:"context,omitzero"`
}

func callOf(e fleet.Event) string { return cmp.Or(e.CallID, "call") }

// begins keeps the states before a call, which it records where it is a new one.
func (o *run) begins(ctx context.Context, e fleet.Event, fresh bool) {
	o.keep(ctx, e.Type == "tool_call", e.CallID)
	o.mu.Lock()
	if id := callOf(e); o.find(id) < 0 && len(o.calls) < maxCalls {
		o.calls = append(o.calls, call{id: id})
	}
	o.mu.Unlock()
	if fresh {
		o.call(e)
	}
}

// find is the place of a call that is open, -1 for none; mu is held.
func (o *run) find(id string) int {
	return slices.IndexFunc(o.calls, func(c call) bool { return c.id == id })
}

func (o *run) call(e fleet.Event) {
	args := e.Args
	if len(args) == 0 && e.Text != "" {
		args = core.MustEncode(map[string]string{"text": e.Text})
	}
	o.rec.Call("", o.server, cmp.Or(e.Tool, "tool"), callOf(e), args)
	o.tells(&e)
}

// acts notes that a call is carried out from now on.
func (o *run) acts(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := o.find(id); i >= 0 {
		o.calls[i].acting = true
	}
}

// ends forgets a call that is over.
func (o *run) ends(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = slices.DeleteFunc(o.calls, func(c call) bool { return c.id == id })
}

// Along implements fleet.Observed.
func (o *run) Along(commit func(func(*audit.Tx) error) error) error { return o.rec.Along(commit) }

// Judged implements fleet.Observed.
func (o *run) Judged(tx *audit.Tx, a judge.Action, d judge.GateDecision) error {
	said := decidedAs(a, d)
	if a.CallID != "" && a.Server != "" && !o.rec.Known(a.CallID) { // a door asks
		o.asks(a)
		said.CallID = a.CallID
	}
	return o.rec.DecideIn(tx, cmp.Or(a.CallID, "call"), core.MustEncode(said))
}

// Answered implements fleet.Observed.
func (o *run) Answered(ctx context.Context, e fleet.Event, a fleet.ToolAnswer) {
	id := callOf(e)
	if a.Decision != "approve" {
		reason := dag.ReasonApprovalDenied
		if a.Decision == "" {
			reason = dag.ReasonCanceled
		}
		o.ends(id)
		_ = o.rec.Interrupt(ctx, reason, id)
		return
	}
	o.await() // while somebody was asked, and before the effect
	if len(a.Args) > 0 && !same(a.Args, e.Args) {
		_ = o.rec.Substitute(ctx, id, a.Args, cmp.Or(a.Reason, "the approval was edited"))
	}
	o.wrote(ctx)
	o.acts(id)
}

// same compares arguments whatever their spelling.
func same(a, b core.Raw) bool {
	x, errX := core.Canonical(a)
	y, errY := core.Canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Ended implements fleet.Observed.
func (o *run) Ended(ctx context.Context, out task.Outcome) error {
	defer o.stop()
	o.keep(ctx, false, "")
	o.await()
	o.wrote(ctx)
	overlap, err := o.r.Trees.Ended(context.WithoutCancel(ctx), o.tenant, o.agent)
	o.note(err)
	o.overlaps(overlap)
	why := map[task.Status]dag.Reason{
		task.Cancelled: dag.ReasonCanceled, task.TimedOut: dag.ReasonTimeout, task.Blocked: dag.ReasonApprovalDenied, task.Failed: dag.ReasonCrash,
	}[out.Status]
	if out.Error != nil && out.Error.Code == fleet.CodeClosing {
		why = dag.ReasonShutdown
	}
	// A failure cuts off nothing but what is open, and a denial is in the record already.
	if why != "" && (why != dag.ReasonCrash && why != dag.ReasonApprovalDenied || o.rec.Open("")) {
		_ = o.rec.Interrupt(ctx, why, "")
	}
	o.rec.Network(core.Map(o.tally.End(), func(h egress.HostSum) dag.HostUse {
		return dag.HostUse{Host: h.Host, Port: h.Port, Connections: int64(h.Connections), Refused: int64(h.Refused), Sent: h.Sent, Received: h.Received}
	}))
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.rec.Rest(ctx), o.r.Egress.EndTask(ctx, o.tenant, o.task), o.err)
}

// note keeps the first thing that was not kept.
func (o *run) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = cmp.Or(o.err, err)
}

// modelAsk is what a runtime saw of a request to a model, for the record.
func modelAsk(e fleet.Event) dag.ModelAsk {
	c := e.Model
	if c == nil {
		return dag.ModelAsk{}
	}
	return dag.ModelAsk{Model: c.Name, Params: c.Params, Tools: c.Tools, Messages: c.Messages}
}

func modelAnswer(e fleet.Event) dag.ModelAnswer {
	a := dag.ModelAnswer{Status: dag.CallStatus(e.Status)}
	if a.Status != dag.CallOK && a.Status != dag.CallInterrupted {
		a.Status = dag.CallError
	}
	c := e.Model
	if c == nil {
		return a
	}
	a.FinishReason, a.Usage = c.Finish, c.Tokens
	if a.Status != dag.CallOK {
		a.Error = &dag.Fault{Code: cmp.Or(c.Fault, string(a.Status)), Message: e.Error}
	}
	if c.Gone {
		a.Reason = dag.ReasonCanceled
	}
	for _, m := range c.Messages {
		a.Content = append(a.Content, m.Content...)
	}
	return a
}
