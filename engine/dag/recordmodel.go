package dag

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Spoken is a message that has no id yet.
type Spoken struct {
	Role    MessageRole
	Content []ContentPart
}

// ModelAsk is what a model is asked: the whole conversation, each time.
type ModelAsk struct {
	Model    string
	Params   core.Raw // an object
	Tools    core.Raw // as the model is given them
	Messages []Spoken
}

// ModelAnswer is what came of that. Content may hold reasoning; it is a
// message of its own in the record.
type ModelAnswer struct {
	Status       CallStatus // ok, error, interrupted
	Error        *Fault     // unless ok
	Reason       Reason     // of an interruption; "" is crash
	Content      []ContentPart
	Usage        *Usage
	FinishReason string
}

// Bounds of what is remembered of a run's talk with models. Past them it is
// begun anew: messages are stated once more, and requests name all their inputs
// once more.
const (
	maxThreads = 1024
	maxKnown   = 16 << 10
	packNodes  = 200     // messages that one event states
	packBytes  = 1 << 20 // of JSON of them
	maxInputs  = 4000
	maxSpoken  = 384 << 10 // bytes of one message
	maxSpec    = 512 << 10 // bytes of tools, and of parameters
)

// modelTalk is what is remembered of a run's talk with models, so that what
// they are told over and over is recorded once.
type modelTalk struct {
	asked   int
	open    map[string]openModel
	known   map[[32]byte]string   // message → id of its node
	threads map[[32]byte]EventRef // conversation up to a message → the request that had it
	tools   [32]byte
	toolsAt EventRef
}

// begin makes room to remember.
func (m *modelTalk) begin() {
	if m.open == nil {
		m.open, m.known, m.threads = map[string]openModel{}, map[[32]byte]string{}, map[[32]byte]EventRef{}
	}
}

// forget has everything stated again.
func (m *modelTalk) forget() {
	clear(m.known)
	clear(m.threads)
	m.tools = [32]byte{}
}

type openModel struct {
	id, correlation string // of the request
	at              time.Time
}

// origin is where something comes from: an event, and its correlation if that
// is an answer of a model.
type origin struct {
	event       EventRef
	correlation string
}

// Asked records a request to a model, durably: it has not been sent yet. Of
// the conversation only what the record does not have is stated: an input that
// is an earlier model_request stands for all of that one's inputs.
func (r *Recording) Asked(ctx context.Context, call string, a ModelAsk) error {
	r.mu.Lock()
	r.asked(fit(call), a)
	r.mu.Unlock()
	return r.Flush(ctx)
}

func (r *Recording) asked(call string, a ModelAsk) {
	m := &r.models
	m.begin()
	if _, twice := m.open[call]; twice {
		return // one of them is recorded
	}
	m.asked++
	a.Messages = slices.Clone(a.Messages) // they are others' too
	sums, chain := r.sums(a.Messages)
	b := &ModelRequest{Model: fit(a.Model), Params: survives(a.Params, maxSpec), InputRefs: []InputRef{}}
	if b.Model == "" {
		b.Model = "unknown"
	}
	from := 0
	for i := len(chain); i > 0; i-- {
		if earlier, ok := m.threads[chain[i-1]]; ok {
			b.InputRefs, from = append(b.InputRefs, InputRef{Event: earlier.EventID}), i
			break
		}
	}
	nodes, fresh, ok := r.inputs(b, a.Messages[from:], sums[from:])
	h := r.head()
	h.Nodes, h.CorrelationID = nodes, fmt.Sprintf("%s/model/%d", r.id, m.asked)
	spec := toolsSpec(a.Tools)
	sum := sha256.Sum256(spec)
	if b.ToolsSpec = spec; len(spec) > 0 && sum == m.tools {
		b.ToolsSpec = core.MustEncode(map[string]EventRef{"same_as": m.toolsAt})
	}
	var e Event
	if ok {
		e, ok = r.add(h, b)
	}
	if ok {
		r.know(fresh)
	} else { // that it was asked is recorded all the same, for the answer to end it
		h.Nodes, spec, chain = nil, nil, nil
		if e, ok = r.add(h, &ModelRequest{Model: b.Model, Params: core.Raw("{}"), InputRefs: []InputRef{}}); !ok {
			return
		}
	}
	if len(spec) > 0 && sum != m.tools {
		m.tools, m.toolsAt = sum, EventRef{e.EventID}
	}
	m.open[call] = openModel{e.EventID, h.CorrelationID, h.TS.at}
	if len(chain) > 0 {
		if len(m.threads) == maxThreads {
			clear(m.threads) // what goes on is soon there again
		}
		m.threads[chain[len(chain)-1]] = EventRef{e.EventID}
	}
}

// sums makes messages fit, and gives the digest of each, and of the
// conversation up to each.
func (r *Recording) sums(all []Spoken) (each, chain [][32]byte) {
	var last [32]byte
	for i := range all {
		all[i].Content = fitParts(all[i].Content, maxSpoken)
		each = append(each, all[i].sum())
		last = sha256.Sum256(append(last[:], each[i][:]...))
		chain = append(chain, last)
	}
	return each, chain
}

func (s Spoken) sum() [32]byte {
	return sha256.Sum256(append([]byte(s.Role), core.MustEncode(s.Content)...))
}

// inputs refers to messages, and makes those that the record does not have.
// The last of them are returned for the request to state, with what is known
// once it does; those that don't fit there are stated by events before it. It
// fails when one of these can't be made.
func (r *Recording) inputs(b *ModelRequest, all []Spoken, sums [][32]byte) (nodes []Node, fresh map[[32]byte]string, ok bool) {
	size := 0
	fresh = map[[32]byte]string{}
	for i, s := range all {
		id, known := r.models.known[sums[i]]
		if !known {
			id, known = fresh[sums[i]]
		}
		if !known {
			n := r.message(At(r.last), s.Role, s.Content)
			id = n.ID()
			grows := len(core.MustEncode(s.Content))
			if size += grows; size > packBytes && len(nodes) > 0 || len(nodes) == packNodes {
				h := r.head()
				h.Nodes, nodes, size = nodes, nil, grows
				if _, ok := r.add(h, &HistoryAppend{List: listModel, MessageRef: h.Nodes[len(h.Nodes)-1].ID()}); !ok {
					return nil, nil, false
				}
				r.know(fresh)
				clear(fresh)
			}
			nodes, fresh[sums[i]] = append(nodes, n), id
		}
		b.InputRefs = append(b.InputRefs, InputRef{Message: id})
	}
	if over := len(b.InputRefs) - maxInputs; over > 0 {
		n := r.abridge(b, over+1, sums)
		nodes = append(nodes, n)
	}
	return nodes, fresh, true
}

// abridge puts a message in the place of inputs that are too many for one
// request. They are in the record all the same; it tells which they are.
func (r *Recording) abridge(b *ModelRequest, over int, sums [][32]byte) Node {
	from := maxInputs / 4 // what a talk began with counts too
	left, h := b.InputRefs[from:from+over], sha256.New()
	for _, sum := range sums[len(sums)-len(b.InputRefs)+from:][:over] {
		h.Write(sum[:])
	}
	n := r.message(At(r.last), RoleSystem, []ContentPart{{Type: "text", Text: fmt.Sprintf(
		"… (%d more messages, %s to %s, sha256 of their digests %x)", over, left[0].Message, left[over-1].Message, h.Sum(nil),
	)}})
	b.InputRefs = slices.Replace(b.InputRefs, from, from+over, InputRef{Message: n.ID()})
	return n
}

// know remembers messages that the record has now. When they are too many it
// begins anew: what is told again is stated again, once.
func (r *Recording) know(fresh map[[32]byte]string) {
	if len(r.models.known)+len(fresh) > maxKnown {
		clear(r.models.known)
	}
	maps.Copy(r.models.known, fresh)
}

// listModel is the list of messages that a model was told and that are none of
// the conversation's own.
const listModel = "model"

// Answered records what a model answered. It ends the request of that name,
// and does nothing when there is none.
func (r *Recording) Answered(ctx context.Context, call string, a ModelAnswer) error {
	r.mu.Lock()
	r.answered(fit(call), a)
	r.mu.Unlock()
	return r.Flush(ctx)
}

// answered reports the request that it ends, "" for none; mu is held.
func (r *Recording) answered(call string, a ModelAnswer) (request string) {
	open, ok := r.models.open[call]
	if !ok {
		return ""
	}
	delete(r.models.open, call)
	r.answer(open, a)
	if a.Status == CallInterrupted {
		r.interrupted(cmp.Or(a.Reason, ReasonCrash), []EventRef{{open.id}})
	}
	return open.id
}

// answerID is the message that a model answered a request with.
func answerID(request string) string { return request + "/answer" }

func (r *Recording) answer(open openModel, a ModelAnswer) {
	h := r.head()
	h.CorrelationID = open.correlation
	var said, thought []ContentPart
	for _, p := range fitParts(a.Content, maxSpoken) {
		if p.Type == "reasoning" {
			thought = append(thought, p)
		} else {
			said = append(said, p)
		}
	}
	if said == nil {
		said = []ContentPart{}
	}
	out := NewNode(&Message{ID: answerID(open.id), Role: RoleAssistant, Content: said, CreatedAt: h.TS})
	h.Nodes = []Node{out}
	b := &ModelResponse{
		RequestID: open.id, OutputRef: out.ID(), FinishReason: fit(a.FinishReason), Usage: a.Usage, Status: a.Status,
		Error: fitFault(a.Error, a.Status), DurationMS: max(0, h.TS.at.Sub(open.at).Milliseconds()),
	}
	if len(thought) > 0 {
		n := NewNode(&Message{ID: open.id + "/reasoning", Role: RoleAssistant, Content: thought, CreatedAt: h.TS})
		h.Nodes, b.ReasoningRef = append(h.Nodes, n), n.ID()
	}
	e, ok := r.add(h, b)
	if !ok { // how it ended is recorded all the same
		said, b.ReasoningRef, b.Error = []ContentPart{}, "", nil
		if a.Status != CallOK {
			b.Error = &Fault{Code: string(a.Status), Message: "what was said of it does not fit into the record"}
		}
		out = NewNode(&Message{ID: out.ID(), Role: RoleAssistant, Content: said, CreatedAt: h.TS})
		h.Nodes = []Node{out}
		if e, ok = r.add(h, b); !ok {
			return
		}
	}
	if r.models.known != nil { // it comes back with the next request
		r.know(map[[32]byte]string{Spoken{RoleAssistant, said}.sum(): out.ID()})
	}
	from := origin{EventRef{e.EventID}, h.CorrelationID}
	r.hear(from.event, NodeRef{TypeGeneration, e.EventID})
	for _, p := range said {
		if p.Type == "tool_use" {
			r.source = from
		}
		if p.Type == "text" && p.Text != "" {
			r.spoken = from
		}
	}
}

// hangUp ends all requests that are open; mu is held.
func (r *Recording) hangUp(how CallStatus, why *Fault) (affects []EventRef) {
	for call, open := range r.models.open {
		delete(r.models.open, call)
		affects = append(affects, EventRef{open.id})
		r.answer(open, ModelAnswer{Status: how, Error: why})
	}
	core.Sort(affects, func(a, b EventRef) int { return strings.Compare(a.EventID, b.EventID) })
	return affects
}
