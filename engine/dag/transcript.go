package dag

import (
	"time"

	"swarmdeck/engine/core"
)

// Transcript makes the events of a run that happened elsewhere, as a Recording
// does of one that happens here: what is said over and over is stated once, and
// hostile texts and numbers are made fit. It is for one goroutine.
type Transcript struct {
	r  *Recording
	at time.Time
}

// NewTranscript begins a run at a time.
func NewTranscript(id string, run RunInfo, at time.Time) *Transcript {
	run.AgentID, run.TaskID, run.SessionID, run.TraceID = fit(run.AgentID), fit(run.TaskID), fit(run.SessionID), fit(run.TraceID)
	t := &Transcript{at: at}
	t.r = &Recording{
		id: fit(id), run: run, inside: true, last: at, calls: map[string]openCall{}, ended: map[string]bool{},
		now: func() time.Time { return t.at },
	}
	if e, ok := t.r.add(t.r.head(), &RunStarted{Reason: run.Reason}); ok {
		t.r.source = origin{event: EventRef{e.EventID}}
	}
	return t
}

// At says when what follows happened; times that go back stand still.
func (t *Transcript) At(at time.Time) { t.at = at }

// listMain is the conversation.
const listMain = "main"

// Said adds a message to the conversation.
func (t *Transcript) Said(s Spoken) {
	m := &t.r.models
	if m.known == nil {
		m.open, m.known, m.threads = map[string]openModel{}, map[[32]byte]string{}, map[[32]byte]EventRef{}
	}
	s.Content = fitParts(s.Content, maxSpoken)
	h := t.r.head()
	n := t.r.message(h.TS, s.Role, s.Content)
	h.Nodes = []Node{n}
	if e, ok := t.r.add(h, &HistoryAppend{List: listMain, MessageRef: n.ID()}); ok {
		t.r.know(map[[32]byte]string{s.sum(): n.ID()})
		if t.r.source.correlation == "" {
			t.r.source.event = EventRef{e.EventID}
		}
	}
}

// Asked is Recording.Asked.
func (t *Transcript) Asked(call string, a ModelAsk) { t.r.asked(fit(call), a) }

// Answered is Recording.Answered, and adds the answer to the conversation where
// it says something.
func (t *Transcript) Answered(call string, a ModelAnswer) {
	open, ok := t.r.models.open[fit(call)]
	if !ok {
		return
	}
	delete(t.r.models.open, fit(call))
	t.r.answer(open, a)
	for _, p := range a.Content {
		if p.Type == "text" && p.Text != "" {
			t.r.add(t.r.head(), &HistoryAppend{List: listMain, MessageRef: answerID(open.id)})
			return
		}
	}
}

// Called is Recording.Call.
func (t *Transcript) Called(server, tool, call string, args core.Raw) {
	t.r.call(server, tool, fit(call), args)
}

// Returned is Recording.Result, of calls that were made.
func (t *Transcript) Returned(call string, status CallStatus, result core.Raw, fault *Fault) {
	if call = fit(call); !t.r.ended[call] {
		t.r.result(call, status, result, fault)
	}
}

// Finish ends the run, and gives its events.
func (t *Transcript) Finish(success bool) ([]Event, error) {
	exit := "success"
	if !success {
		exit = "error"
	}
	if len(t.r.calls) > 0 || len(t.r.models.open) > 0 {
		t.r.interrupt(ReasonCanceled, "")
	}
	t.r.add(t.r.head(), &RunFinished{Exit: exit})
	return t.r.pending, t.r.err
}
