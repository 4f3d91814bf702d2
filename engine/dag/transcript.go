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
	t.r = newRecording(fit(id), run, at, func() time.Time { return t.at })
	if e, ok := t.r.add(t.r.head(), t.r.run.started()); ok {
		t.r.began(e.EventID)
	}
	return t
}

// At says when what follows happened; times that go back stand still.
func (t *Transcript) At(at time.Time) { t.at = at }

// Said adds a message to the conversation.
func (t *Transcript) Said(s Spoken) {
	s.Content = fitParts(s.Content, maxSpoken)
	sum := s.sum()
	t.r.Message(ListMain, s.Role, s.Content...)
	t.r.models.begin()
	t.r.know(map[[32]byte]string{sum: t.r.messageID()})
}

// Asked is Recording.Asked.
func (t *Transcript) Asked(call string, a ModelAsk) { t.r.asked(fit(call), a) }

// Answered is Recording.Answered, and adds the answer to the conversation where
// it says something.
func (t *Transcript) Answered(call string, a ModelAnswer) {
	request := t.r.answered(fit(call), a)
	for _, p := range a.Content {
		if request != "" && p.Type == "text" && p.Text != "" {
			t.r.add(t.r.head(), &HistoryAppend{List: ListMain, MessageRef: answerID(request)})
			return
		}
	}
}

// Called is Recording.Call.
func (t *Transcript) Called(server, tool, call string, args core.Raw) {
	t.r.Call("", server, tool, call, args)
}

// Returned is Recording.Result.
func (t *Transcript) Returned(call string, status CallStatus, result core.Raw, fault *Fault) {
	t.r.Result(call, status, result, fault)
}

// Finish ends the run, and gives its events.
func (t *Transcript) Finish(success bool) ([]Event, error) {
	t.r.finish(success, nil)
	return t.r.pending, t.r.err
}
