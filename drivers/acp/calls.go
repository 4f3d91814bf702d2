package acp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
	"swarmdeck/engine/fleet"
)

// callUpdate is what an update or a permission request says about a tool call.
// What is absent keeps its value.
type callUpdate struct {
	ID        string   `json:"toolCallId"`
	Title     *string  `json:"title"`
	ToolKind  *string  `json:"kind"`
	Status    *string  `json:"status"`
	Locations core.Raw `json:"locations"`
	RawInput  core.Raw `json:"rawInput"`
	RawOutput core.Raw `json:"rawOutput"`
	Meta      meta     `json:"_meta"`
}

// meta is what agents tell beside the protocol, each in a member of its own.
type meta struct {
	Usage *reported `json:"usage"` // of one request to the model
	// Of a terminal that the agent runs itself: what it printed since, and its end.
	Output *struct {
		Data string `json:"data"`
	} `json:"terminal_output"`
	Delta *struct {
		Data string `json:"data"`
	} `json:"terminal_output_delta"`
	Exit *struct {
		Code   *int    `json:"exit_code"`
		Signal *string `json:"signal"`
	} `json:"terminal_exit"`
}

// call is a tool call of a turn, as far as the agent has told of it.
type call struct {
	id        string
	title     string
	kind      string
	locations core.Raw
	input     core.Raw
	output    core.Raw
	texts     []string
	diffs     []fileDiff
	shown     map[[32]byte]bool // diffs that are in the log
	gates     []string          // ids of its questions, answered or not
	size      int               // bytes that were taken for it
	printed   []byte            // by the agent's own terminal
	exit      string            // of that
	running   time.Time         // since when the agent says that it runs; it may ask yet
	begun     bool              // that it runs is in the log, and it had not asked
	over      bool
}

// mayAsk is how long a call that runs, as its agent says, may still turn out to ask: some
// tell so before their question.
const mayAsk = 2 * time.Second

// fileDiff is a change of a file that a call makes or has made.
type fileDiff struct {
	Path string `json:"path"`
	Old  string `json:"oldText"`
	New  string `json:"newText"`
}

// toolContent is one part of a call's content: content, diff or terminal.
type toolContent struct {
	Type       string   `json:"type"`
	Content    core.Raw `json:"content"`
	TerminalID string   `json:"terminalId"`
	fileDiff
}

// merge adds to a call what was said about it; nil when there are too many.
func (t *turn) merge(u callUpdate, content core.Raw) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[u.ID]
	if c == nil {
		if len(t.calls) >= maxCalls {
			return nil
		}
		c = &call{id: u.ID, kind: "other", shown: map[[32]byte]bool{}}
		t.calls[u.ID] = c
	}
	if u.Title != nil && *u.Title != "" {
		c.title = core.ClipTo(*u.Title, 4096)
	}
	if u.ToolKind != nil && *u.ToolKind != "" {
		c.kind = core.ClipTo(*u.ToolKind, 64)
	}
	size := len(u.Locations) + len(u.RawInput) + len(u.RawOutput) + len(content)
	if c.over || t.held+size > maxHeld {
		return c // its title has to do
	}
	c.size += size
	t.held += size
	keep := func(to *core.Raw, from core.Raw) {
		if len(from) > 0 && string(from) != "null" {
			*to = bytes.Clone(from)
		}
	}
	keep(&c.locations, u.Locations)
	keep(&c.input, u.RawInput)
	keep(&c.output, u.RawOutput)
	c.terminal(&u.Meta)
	var parts []toolContent
	if len(content) == 0 || jsonrpc.Decode(content, &parts) != nil {
		return c
	}
	c.texts, c.diffs = nil, nil
	for _, p := range parts[:min(len(parts), 1000)] {
		switch p.Type {
		case "content":
			if text := readBlock(p.Content); text != "" {
				c.texts = append(c.texts, text)
			}
		case "diff":
			c.diffs = append(c.diffs, p.fileDiff)
		case "terminal":
			c.texts = append(c.texts, "[terminal "+core.ClipTo(p.TerminalID, 128)+"]")
		default:
			c.texts = append(c.texts, "[unknown content "+core.ClipTo(p.Type, 64)+"]")
		}
	}
	return c
}

// terminal takes what the agent's own terminal printed, and how it ended.
func (c *call) terminal(m *meta) {
	switch {
	case m.Output != nil:
		c.printed = append(c.printed[:0], m.Output.Data...)
	case m.Delta != nil:
		c.printed = append(c.printed, m.Delta.Data...)
	}
	if len(c.printed) > maxFinal { // its end says more
		c.printed = c.printed[len(c.printed)-maxFinal:]
	}
	if e := m.Exit; e != nil {
		switch {
		case e.Code != nil:
			c.exit = fmt.Sprint(*e.Code)
		case e.Signal != nil:
			c.exit = core.ClipTo(*e.Signal, 32)
		}
	}
}

// upsert takes an update about a tool call: it may be the first that is heard
// of it, or come after it has ended.
func (t *turn) upsert(u callUpdate, content core.Raw) {
	c := t.merge(u, content)
	if c == nil {
		return
	}
	t.showDiffs(c)
	t.mu.Lock()
	status := ""
	if u.Status != nil {
		status = *u.Status
	}
	done := !c.over && (status == "completed" || status == "failed")
	if status == "in_progress" && c.running.IsZero() && !c.over {
		c.running = time.Now()
	}
	c.over = c.over || done
	t.mu.Unlock()
	if done && !t.cutOff(status) {
		t.finishCall(c, map[bool]string{true: "ok", false: "error"}[status == "completed"], "")
	}
}

// cutOff reports that what an agent says of a call's end is no word of its own: the turn is
// being ended, or its program has died, of which a child may tell as a failure. The end
// of the run tells what became of it then.
func (t *turn) cutOff(status string) bool {
	if t.Ending() != keeper.Running {
		return true
	}
	if status != "failed" || t.s == nil || t.s.pe.Proc == nil {
		return false
	}
	return t.s.pe.dies(deathPatience)
}

// deathPatience is how long the end of a program may be told after what its child says.
const deathPatience = 50 * time.Millisecond

// unasked passes on the calls that have run for a while without a question, inside Speak.
func (t *turn) unasked() {
	t.mu.Lock()
	var begun []fleet.Event
	for _, c := range t.calls {
		if !c.running.IsZero() && !c.begun && !c.over && len(c.gates) == 0 && time.Since(c.running) > mayAsk {
			c.begun = true
			begun = append(begun, fleet.Event{Type: "tool_call", CallID: c.id, Tool: c.kind, Text: c.title, Args: c.args()})
		}
	}
	t.mu.Unlock()
	core.Sort(begun, func(a, b fleet.Event) int { return strings.Compare(a.CallID, b.CallID) })
	for _, e := range begun {
		t.flush()
		t.Pass(e)
	}
}

// showDiffs logs the changes of a call that are not there yet.
func (t *turn) showDiffs(c *call) {
	t.mu.Lock()
	var news []fileDiff
	for _, d := range c.diffs {
		sum := sha256.Sum256(core.MustEncode(d))
		if !c.shown[sum] && len(c.shown) < 1000 {
			c.shown[sum] = true
			news = append(news, d)
		}
	}
	id := c.id
	t.mu.Unlock()
	for _, d := range news {
		t.emit(fleet.Event{Type: "diff", CallID: id, Path: core.ClipTo(d.Path, 2048), Text: core.ClipTo(diff.Unified(d.Path, d.Old, d.New, maxLogLine), maxLogLine)})
	}
}

// finishCall reports what came of a call, under each id that was asked about.
func (t *turn) finishCall(c *call, status, why string) {
	t.mu.Lock()
	gates := c.gates
	e := fleet.Event{Type: "tool_result", CallID: c.id, Status: status, Error: why, Output: c.result(), Tool: c.kind, Text: c.title}
	if len(gates) == 0 && !c.begun {
		e.Args = c.args() // nothing was heard of it before
	}
	t.held -= c.size // nothing more is asked of it
	c.size, c.input, c.output, c.texts, c.diffs, c.printed = 0, nil, nil, nil, nil, nil
	t.mu.Unlock()
	if len(gates) == 0 {
		t.emit(e)
	}
	for _, id := range gates {
		e.CallID = id
		t.emit(e)
	}
}

// result is a call's output as an object.
func (c *call) result() core.Raw {
	out := map[string]any{}
	if len(c.output) > 0 {
		if c.output.Kind() == '{' && core.CheckObject("output", c.output, core.MaxInput) == nil {
			return c.output
		}
		out["output"] = core.ClipTo(string(c.output), core.MaxInput)
		if c.output.IsValid() && len(c.output) < core.MaxInput {
			out["output"] = c.output
		}
	}
	if len(c.printed) > 0 {
		out["output"] = core.ClipTo(strings.ToValidUTF8(string(c.printed), "\uFFFD"), core.MaxInput)
	}
	if c.exit != "" {
		out["exit"] = c.exit
	}
	if len(c.texts) > 0 {
		out["text"] = core.ClipTo(strings.Join(c.texts, "\n"), maxFinal)
	}
	return core.MustEncode(out)
}

// closeCalls ends what the agent has not told the end of.
func (t *turn) closeCalls(why string) {
	t.mu.Lock()
	var open, idle []*call
	for _, c := range t.calls {
		switch {
		case c.over:
			continue
		case !c.running.IsZero() || len(c.gates) > 0:
			open = append(open, c)
		default:
			idle = append(idle, c)
		}
		c.over = true
	}
	t.mu.Unlock()
	for _, c := range open {
		t.finishCall(c, "error", why)
	}
	for _, c := range idle {
		t.emit(fleet.Event{Type: "log", Level: "DEBUG", Text: "the agent told of a call that neither asked nor ran: " + c.kind + " " + c.title})
	}
}
