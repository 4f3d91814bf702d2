package exec

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge/edits"
)

// Bounds of what is heard of one turn on a wire.
const (
	maxWireLine  = 8 << 20 // bytes
	maxOpenCalls = 1000
	maxCounted   = 10_000   // messages
	sayPiece     = 48 << 10 // bytes of a message that comes in pieces, for one line of the log
	mostTokens   = 1 << 40
)

// hearing makes events of what one process prints on its wire, in order. Both its
// streams are read at once.
type hearing struct {
	*wire
	say    func(fleet.Event)
	prefix string // of its calls' ids, which begin anew with each process

	mu        sync.Mutex
	doc       [2]*bytes.Buffer // of a document of several lines, by stream; nil outside of one
	begun     bool             // it has begun, or taken up, a conversation
	acts      bool             // it has made a call, or prints none of them
	talk      conversation
	pieces    strings.Builder // of the message under way, not said yet
	whole     strings.Builder // all of that message
	final     string          // the last message
	open      map[string]fleet.Event
	counted   map[string]bool // messages whose tokens are in sum
	sum, told fleet.Split
	context   fleet.Context
	finished  bool   // it has told of its end
	failed    string // why that is a failure
	hint      string // words of the program that say what kind of failure
	complaint string // the last error that it told of
}

// hear begins to hear a process, whose conversation had spent this before.
func (w *wire) hear(say func(fleet.Event), talk conversation, prefix string) *hearing {
	return &hearing{wire: w, say: say, prefix: prefix, talk: conversation{Spent: talk.Spent}, open: map[string]fleet.Event{}, counted: map[string]bool{}}
}

// line takes a line of stdout (0) or stderr (1); false for one that is no event.
func (h *hearing) line(stream int, line []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, doc := bytes.TrimSpace(line), h.doc[stream]
	switch {
	case h.pages && doc == nil && string(data) == "{":
		h.doc[stream] = bytes.NewBufferString("{")
		return true
	case doc != nil:
		doc.Write(line)
		if string(line) != "}" && doc.Len() <= maxWireLine {
			return true
		}
		h.doc[stream], data = nil, doc.Bytes()
	case stream == 1:
		if strings.Contains(strings.ToLower(string(data)), "error") {
			h.complaint = core.ClipTo(string(data), keeper.MaxMessage)
		}
		return false
	}
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return false
	}
	whole := core.Raw(bytes.Clone(data))
	if !whole.IsValid() { // half a surrogate pair is mended
		_ = whole.Format(jsontext.AllowInvalidUTF8(true))
	}
	var all []core.Raw
	switch {
	case core.Depth(whole) > core.MaxDepth || !whole.IsValid():
		h.log("WARN", "malformed: "+core.ClipTo(pipe.Text(data), maxLogLine/2))
		return true
	case whole[0] == '{':
		all = []core.Raw{whole}
	default:
		_ = core.DecodeStored(whole, &all)
	}
	for _, e := range all {
		if !h.read(h, e) {
			h.log("DEBUG", "told: "+core.ClipTo(string(e), maxLogLine/2))
		}
	}
	return true
}

// end passes on what is left when the process has ended.
func (h *hearing) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flush()
	for _, doc := range h.doc {
		if doc != nil {
			h.log("WARN", "malformed: "+core.ClipTo(pipe.Text(doc.Bytes()), maxLogLine/2))
		}
	}
	for id := range h.open {
		h.done(id, nil, "the agent told no end of it")
	}
}

// What follows is for the readers: mu is held.

func (h *hearing) log(level, text string) {
	h.say(fleet.Event{Type: "log", Level: level, Text: core.ClipTo(text, maxLogLine)})
}

// began takes the id of the conversation.
func (h *hearing) began(id string) {
	if h.begun = true; !sessionPattern().MatchString(id) || id == h.talk.Session {
		return
	}
	h.talk.Session = id
	h.log("DEBUG", "the conversation is "+id)
}

// complain keeps an error that may not be the end.
func (h *hearing) complain(text string) {
	h.complaint = core.ClipTo(text, keeper.MaxMessage)
	h.log("WARN", text)
}

// message takes a whole message of the agent, or thought.
func (h *hearing) message(kind, text string) {
	h.flush()
	if kind == "message" && text != "" {
		h.final = core.ClipTo(text, core.MaxInput)
	}
	for piece := range keeper.Pieces(text, maxLogLine) {
		h.say(fleet.Event{Type: kind, Text: piece})
	}
}

// piece takes a part of a message, which ends with whatever else is told.
func (h *hearing) piece(text string) {
	h.pieces.WriteString(text)
	if h.whole.Len() < core.MaxInput {
		h.whole.WriteString(text)
	}
	if h.pieces.Len() > sayPiece {
		h.sayPieces()
	}
}

// flush ends the message under way.
func (h *hearing) flush() {
	if h.whole.Len() == 0 {
		return
	}
	h.sayPieces()
	h.final = core.ClipTo(h.whole.String(), core.MaxInput)
	h.whole.Reset()
}

func (h *hearing) sayPieces() {
	text := h.pieces.String()
	h.pieces.Reset()
	for piece := range keeper.Pieces(text, maxLogLine) {
		h.say(fleet.Event{Type: "message", Text: piece})
	}
}

// didAct reports whether it has made a call.
func (h *hearing) didAct() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acts
}

// call takes a call that has begun, and that nobody was asked about.
func (h *hearing) call(id, tool, about string, args core.Raw) {
	h.flush()
	h.acts = true
	e := fleet.Event{Type: "tool_call", CallID: h.prefix + id, Tool: tool, Text: core.ClipTo(about, 4096), Args: args}
	if len(h.open) < maxOpenCalls {
		h.open[id] = e
	}
	h.say(e)
}

// done takes the end of a call; why is "" for a success.
func (h *hearing) done(id string, output any, why string) {
	h.flush()
	e, known := h.open[id]
	delete(h.open, id)
	if !known {
		e = fleet.Event{CallID: h.prefix + id, Tool: "tool"}
	}
	if why == "" {
		for _, c := range edits.Of(e.Args, func(string) (string, bool) { return "", false }) {
			h.say(fleet.Event{Type: "diff", CallID: e.CallID, Path: core.ClipTo(c.Path, 2048), Text: c.Diff})
		}
	}
	e.Type, e.Args, e.Status, e.Error, e.Output = "tool_result", nil, "ok", core.ClipTo(why, keeper.MaxMessage), core.Raw(`{}`)
	if why != "" {
		e.Status = "error"
	}
	if output != nil {
		e.Output = core.MustEncode(output)
	}
	h.say(e)
}

// spend takes what the turn has spent so far, and since the last what it cost.
func (h *hearing) spend(sum fleet.Split, cost float64) {
	h.flush()
	if all := []int64{sum.Input, sum.Output, sum.Cached, h.context.Used, h.context.Size}; slices.Min(all) < 0 || slices.Max(all) > mostTokens {
		return
	}
	more := keeper.Beyond(sum, h.told)
	h.told = h.told.Plus(more)
	if e := (fleet.Event{Type: "usage", Tokens: more.Input + more.Output, CostUSD: max(0, cost), Split: more, Context: h.context}); e.Tokens > 0 || e.CostUSD > 0 || more.Cached > 0 {
		h.say(e)
	}
}

// finish takes the end of the turn: why it failed, or "".
func (h *hearing) finish(why string) {
	h.flush()
	h.finished, h.failed = true, why
}

// about is what a call is about, in the argument that says so.
func about(args core.Raw) string {
	var in map[string]core.Raw
	if core.DecodeStored(args, &in) != nil {
		return ""
	}
	for _, name := range []string{"command", "file_path", "path", "absolute_path", "dir_path", "pattern", "query", "url", "description", "prompt"} {
		if text := words(in[name]); text != "" {
			return text
		}
	}
	return ""
}

// words are the texts of a JSON value: a string, or a list of strings or of blocks that
// have a text.
func words(v core.Raw) string {
	var text string
	var all []core.Raw
	if core.DecodeStored(v, &text) == nil {
		return text
	}
	if core.DecodeStored(v, &all) != nil {
		return ""
	}
	var out []string
	for _, part := range all {
		var block struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch {
		case core.DecodeStored(part, &text) == nil:
			out = append(out, text)
		case core.DecodeStored(part, &block) == nil && block.Type == "text":
			out = append(out, block.Text)
		default:
			out = append(out, "["+core.ClipTo(block.Type, 64)+"]")
		}
	}
	return strings.Join(out, "\n")
}
