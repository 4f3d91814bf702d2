package dag

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// MaxBatch is how many events one Emit takes.
const MaxBatch = 1000

// PolicyRuns begins the ids of the runs that the engine keeps of policies; an
// intent's run has the intent's id. The engine alone emits events of them; an
// import may bring them.
const PolicyRuns = "policy:"

// kept reports the run of a policy, an intent or an edit: with an event of somebody else
// in it, the engine's next might not be taken.
func kept(run string) bool {
	prefix, _, _, ok := core.ParseID(run)
	return strings.HasPrefix(run, PolicyRuns) || strings.HasPrefix(run, EditRun("")) || ok && prefix == core.IntentPrefix
}

// Emit takes events into the record, all or none, in their order and in one
// transaction with its audit events. An event that is there already is left as
// it is, and found again. An agent speaks for itself alone, and nobody for the
// engine: the runs that it keeps itself are refused.
func (d *DAG) Emit(ctx context.Context, by core.Caller, events ...Event) ([]Recorded, error) {
	for i := range events {
		if e := &events[i]; kept(e.RunID) {
			return nil, core.Invalid("run_id", core.Clip(e.RunID), "an id that is no intent's and does not begin with "+PolicyRuns+" or "+EditRun("")+", as those of the engine's own runs do").With("event_id", e.EventID)
		}
	}
	var all []Recorded
	err := d.ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		for i := range events {
			if err := checkEnd(tx, &events[i]); err != nil {
				return err
			}
		}
		all, err = d.emitIn(tx, events...)
		return err
	})
	return all, audit.Explain("emit an event", err)
}

// emitIn is EmitIn for a transaction of nothing else: it says in the audit log who
// emitted how much.
func (d *DAG) emitIn(tx *audit.Tx, events ...Event) ([]Recorded, error) {
	all, err := d.EmitIn(tx, events...)
	if err != nil {
		return nil, err
	}
	fresh := 0
	for i := range all {
		if all[i].New {
			fresh++
		}
	}
	if fresh == 0 {
		return all, nil
	}
	first := &events[0]
	_, err = tx.Record(audit.Entry{
		Type: "dag.emitted", Trace: traceOf(first.TraceID), Subject: "dag", ID: first.EventID, Detail: map[string]int{"events": len(all), "new": fresh},
	})
	return all, err
}

// checkEnd: a run that is being recorded ends with its task, or what its agent does
// from then on would be lost.
func checkEnd(tx *audit.Tx, e *Event) error {
	if e.Kind != KindRunFinished {
		return nil
	}
	_, live, err := recording.Get(tx, record.Key(e.RunID))
	if err == nil && live {
		err = core.Errorf(core.Conflict, "run_id: run %s is being recorded, and ends with its task", core.Clip(e.RunID)).With("field", "run_id").With("event_id", e.EventID)
	}
	return err
}

// EmitIn is Emit inside a transaction that changes something else: the events
// are recorded if and only if the change is made. After an error the
// transaction must fail.
func (d *DAG) EmitIn(tx *audit.Tx, events ...Event) ([]Recorded, error) {
	for i := range events {
		if tx.By.Kind == core.Agent && events[i].AgentID != tx.By.Name {
			return nil, core.Errorf(core.Denied, "agent_id: %s can't speak for %q", tx.By.Name, events[i].AgentID).
				With("field", "agent_id").With("event_id", events[i].EventID)
		}
	}
	return d.ObserveIn(tx, events...)
}

// ObserveIn is EmitIn for what the engine itself saw happen, whoever did it.
func (d *DAG) ObserveIn(tx *audit.Tx, events ...Event) ([]Recorded, error) {
	if len(events) > MaxBatch {
		return nil, core.Invalid("events", len(events), fmt.Sprintf("at most %d at once", MaxBatch))
	}
	all, _, err := d.observe(tx, false, events)
	return all, err
}

// observe takes events in. With leave one that does not agree with what is recorded costs
// itself alone, which the audit log tells; refused is the first such.
func (d *DAG) observe(tx *audit.Tx, leave bool, events []Event) (all []Recorded, refused, err error) {
	w := &writer{reader: reader{tx.Derived()}, tx: tx, batch: events, heads: map[uint64]*head{}}
	all = make([]Recorded, len(events))
	for i := range events {
		e := &events[i]
		if e.Body == nil {
			return nil, nil, core.Errorf(core.Internal, "an event was emitted that Parse did not make")
		}
		all[i], err = w.emit(e)
		if leave && err != nil && core.AsError(err).Code == core.Conflict {
			refused = cmp.Or(refused, named(e, err))
			_, err = tx.Record(audit.Entry{
				Type: "dag.left_out", Trace: traceOf(e.TraceID), Subject: "dag.event", ID: e.EventID,
				Detail: map[string]any{"run_id": e.RunID, "kind": e.Kind, "error": err.Error()},
			})
		}
		if err != nil {
			return nil, nil, named(e, err)
		}
	}
	return all, refused, w.finish()
}

// RunIn is what a run comes to so far, within a transaction; without Events
// when nothing of it is here.
func (d *DAG) RunIn(tx *audit.Tx, run string) (RunState, error) {
	_, h, err := reader{tx}.run(run)
	return h.RunState, err
}

// named says which event an error is about.
func named(e *Event, err error) error {
	refused := core.AsError(err)
	if refused.Code == core.Internal {
		return fmt.Errorf("event %s: %w", e.EventID, err)
	}
	return refused.With("event_id", e.EventID)
}

// writer takes events in within one transaction: the events themselves into tx, and
// what follows from them into the transaction that it reads from.
type writer struct {
	reader
	tx    *audit.Tx        // nil where what follows is made anew
	batch []Event          // that are taken in together
	heads map[uint64]*head // of the streams that got longer
	order []uint64         // those streams, as they came
	fresh uint64           // events that were not here
	ended []*head          // streams of runs that are over with one of them
}

// emit takes one event in.
func (w *writer) emit(e *Event) (Recorded, error) {
	self := nameKey(NodeRef{TypeEvent, e.EventID})
	num, pos, err := w.num(self)
	if err != nil {
		return Recorded{}, err
	}
	if pos > 0 {
		return w.event(pos)
	}
	streamKey, name := streamOf(e)
	stream, _, err := w.intern(streamKey)
	if err != nil {
		return Recorded{}, err
	}
	h, err := w.headOf(stream, name)
	if err != nil {
		return Recorded{}, err
	}
	if err := w.check(e, stream, h); err != nil {
		return Recorded{}, err
	}
	pos = uint64(w.Add(countEvents, 1))
	w.fresh++
	rec := Recorded{Pos: pos, Seq: h.Events + 1, RecordedAt: At(w.tx.Now()), New: true, Event: *e}
	if err := stored.Put(w.tx, record.Seq(pos), encodeRecord(w.tx.Now(), rec.Seq, stream, e)); err != nil {
		return Recorded{}, err
	}
	if err := w.take(e, self, num, pos, stream, h); err != nil {
		return Recorded{}, err
	}
	if e.Kind == KindRunFinished {
		w.ended = append(w.ended, h)
	}
	w.tx.Changed("dag", e.EventID)
	return rec, nil
}

// take puts an event where it is looked for. num is the number of its name, 0 for one
// that nothing named yet; h the head of its stream, as it was before.
func (w *writer) take(e *Event, self record.Key, num, pos, stream uint64, h *head) error {
	if num == 0 {
		num = w.nextName()
	}
	if err := names.Put(w, self, record.Seq(num).Seq(pos)); err != nil {
		return err
	}
	seq := h.Events + 1
	at, err := w.surroundings(e, stream, seq)
	if err != nil {
		return err
	}
	if err := w.index(e, pos, stream, seq); err != nil {
		return err
	}
	if err := w.graph(e, pos, at); err != nil {
		return err
	}
	h.extend(e, pos)
	if seq%markEvery == 0 {
		return marks.Put(w, record.Seq(stream).Seq(seq), h.RunState)
	}
	return nil
}

// finish writes what is left once all events are in: the heads of the streams that got
// longer, and what the record is searched by. The audit log is told which runs are over.
func (w *writer) finish() error {
	for _, stream := range w.order {
		w.tx.Trace = cmp.Or(w.tx.Trace, traceOf(w.heads[stream].TraceID))
	}
	for _, h := range w.ended {
		if _, err := w.tx.Record(audit.Entry{Type: FinishedEvent, Trace: traceOf(h.TraceID), Subject: "dag.run", ID: h.RunID}); err != nil {
			return err
		}
	}
	if err := w.putHeads(); err != nil {
		return err
	}
	return w.fillBlocks()
}

func (w *writer) putHeads() error {
	for _, stream := range w.order {
		if err := heads.Put(w, record.Seq(stream), *w.heads[stream]); err != nil {
			return err
		}
	}
	return nil
}

// FinishedEvent is the audit event of a run's end, by the run's id.
const FinishedEvent = "dag.finished"

// traceOf is a trace id as the audit log takes it: a fresh one for what is none.
func traceOf(id string) string {
	if core.CheckTrace(id) != nil {
		return ""
	}
	return id
}

// headOf is the head of a stream that is about to get longer.
func (w *writer) headOf(stream uint64, name string) (*head, error) {
	if h := w.heads[stream]; h != nil {
		return h, nil
	}
	h, err := w.head(stream)
	if err != nil {
		return nil, err
	}
	h.Stream = name
	w.heads[stream] = h
	w.order = append(w.order, stream)
	return h, nil
}

func (w *writer) nextName() uint64 { return uint64(w.Add(countNames, 1)) }

// intern is the number of a node, given to it when nothing named it yet.
func (w *writer) intern(k record.Key) (num uint64, fresh bool, err error) {
	num, _, err = w.num(k)
	if err != nil || num > 0 {
		return num, false, err
	}
	num = w.nextName()
	return num, true, names.Put(w, k, record.Seq(num))
}

// surroundings finds what an event's edges need to know.
func (w *writer) surroundings(e *Event, stream, seq uint64) (surroundings, error) {
	at := surroundings{seq: seq}
	var err error
	switch b := e.Body.(type) {
	case *ToolResult:
		var call uint64
		if at.call, call, err = w.callOf(stream, b.CallID); call > 0 && err == nil {
			err = w.came(call, string(b.Status))
		}
	case *ToolCall:
		if h := w.heads[stream]; h.open(b.CallID) >= 0 || h.OpenUnlisted > 0 {
			var call uint64
			if _, call, err = w.callOf(stream, b.CallID); call > 0 && err == nil {
				err = w.replaced(call)
			}
		}
	case *ModelResponse:
		if IsEventID(b.RequestID) {
			at.request = b.RequestID
		} else if e.CorrelationID != "" {
			at.request, err = w.requestOf(stream, e.CorrelationID)
		}
	}
	return at, err
}

// callOf is the newest tool_call of a call id in a stream, and its pos; 0 when
// there is none.
func (r reader) callOf(stream uint64, call string) (id string, pos uint64, err error) {
	err = callIDs.Within(r, record.Seq(stream).Text(call), nil, nil, true, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		if kindOf(found) != KindToolCall.code() {
			return true, nil
		}
		pos = rest.Seq()
		e, err := r.event(pos)
		id = e.Event.EventID
		return false, err
	})
	return id, pos, err
}

// requestOf is the newest model_request of a correlation in a stream.
func (r reader) requestOf(stream uint64, correlation string) (id string, err error) {
	err = callIDs.Within(r, requestPrefix(stream, correlation), nil, nil, true, func(rest record.Parts, _ record.Found[[]byte]) (bool, error) {
		e, err := r.event(rest.Seq())
		id = e.Event.EventID
		return false, err
	})
	return id, err
}

// requestPrefix leads to the model requests of a correlation, beside the calls:
// no call id begins with a zero byte.
func requestPrefix(stream uint64, correlation string) record.Key {
	return record.Seq(stream).Byte(0).Text(correlation)
}

// index puts an event where it is looked for.
func (w *writer) index(e *Event, pos, stream, seq uint64) error {
	kind := record.Key{e.Kind.code()}
	if e.RunID != "" && seq == 1 {
		w.Add(countRuns, 1)
	}
	h := w.heads[stream]
	told := uint64(1)
	if e.routine() {
		told = 0
	}
	h.Told += told
	if err := streams.Put(w, record.Seq(stream).Seq(seq), record.Seq(pos).Byte(e.Kind.code()).Seq(h.Told)); err != nil {
		return err
	}
	if err := w.append(kinds, kind, record.Seq(pos)); err != nil {
		return err
	}
	for _, of := range []struct {
		class byte
		id    string
	}{{typeCode(TypeAgent), e.AgentID}, {nameTask, cmp.Or(e.TaskID, h.TaskID)}, {nameSession, cmp.Or(e.SessionID, h.SessionID)}} {
		if of.id == "" {
			continue
		}
		num, _, err := w.intern(rawNameKey(of.class, of.id))
		if err != nil {
			return err
		}
		n, last, err := tip(w.reader, subjects, record.Seq(num))
		if err != nil {
			return err
		}
		if err := subjects.Put(w, listed{under: record.Seq(num)}.at(n+1), record.Seq(pos).Seq(stream).Seq(record.LastSeq(last)+told)); err != nil {
			return err
		}
	}
	if e.CorrelationID != "" {
		if err := w.append(correlated, record.Text(e.CorrelationID), record.Seq(pos)); err != nil {
			return err
		}
	}
	return w.indexKind(e, pos, stream)
}

func (w *writer) indexKind(e *Event, pos, stream uint64) error {
	kind := record.Key{e.Kind.code()}
	switch b := e.Body.(type) {
	case *ModelRequest:
		return callIDs.Put(w, requestPrefix(stream, e.CorrelationID).Seq(pos), kind)
	case *ToolCall:
		if err := w.append(runCalls, record.Seq(stream), record.Seq(pos)); err != nil {
			return err
		}
		return callIDs.Put(w, record.Seq(stream).Text(b.CallID).Seq(pos), kind)
	case *ToolResult:
		return callIDs.Put(w, record.Seq(stream).Text(b.CallID).Seq(pos), kind)
	case *PolicyActivated:
		return w.append(policies, record.Key{active}, record.Seq(pos))
	}
	return nil
}

// append adds an entry to a list.
func (w *writer) append(rows record.Rows[[]byte], under, value record.Key) error {
	n, err := w.last(rows, under)
	if err != nil {
		return err
	}
	return rows.Put(w, listed{under: under}.at(n+1), value)
}
