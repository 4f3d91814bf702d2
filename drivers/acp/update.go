package acp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// update is a session update. Its kind is read first; the other members only
// mean something together with it.
type update struct {
	Kind          string         `json:"sessionUpdate"`
	Content       core.Raw       `json:"content"` // a block, or a tool call's list
	MessageID     string         `json:"messageId"`
	Entries       []planEntry    `json:"entries"`
	CurrentModeID string         `json:"currentModeId"`
	ConfigOptions []configOption `json:"configOptions"`
	Commands      []command      `json:"availableCommands"`
	Used          int64          `json:"used"`
	Size          int64          `json:"size"`
	Cost          *cost          `json:"cost"`
	callUpdate
}

type planEntry struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// update deals with one update, on the session's own goroutine.
func (s *session) update(raw core.Raw) {
	s.lastHeard.Store(time.Now().UnixNano())
	var head struct {
		Kind string `json:"sessionUpdate"`
	}
	var u update
	err := jsonrpc.Decode(raw, &head)
	known := err == nil && knownUpdate(head.Kind)
	if known {
		err = jsonrpc.Decode(raw, &u)
	}
	if err != nil {
		s.a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "malformed update: " + core.ClipTo(string(raw), maxNoise)})
		return
	}
	switch head.Kind { // what holds for the session, with a prompt or without
	case "current_mode_update":
		s.changed(u.CurrentModeID)
		return
	case "config_option_update":
		s.optionsChanged(u.ConfigOptions)
		return
	case "available_commands_update":
		s.commandsChanged(u.Commands)
		return
	case "session_info_update":
		return // nothing of it is shown
	}
	t := s.turn.Load()
	switch {
	case s.replaying.Load():
		s.replayed.Add(1)
	case !known:
		s.a.hear(fleet.Event{Type: "log", Level: "INFO", Text: "unknown update: " + core.ClipTo(string(raw), maxLogLine)})
	case t == nil && head.Kind == "usage_update":
		s.spend(u)
	case t == nil:
		s.a.hear(fleet.Event{Type: "log", Level: "INFO", Text: "outside of a task: " + core.ClipTo(string(raw), maxNoise)})
	default:
		t.update(u)
	}
}

func knownUpdate(kind string) bool {
	return slices.Contains([]string{
		"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
		"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update",
	}, kind)
}

// update takes what the agent says while it works on a prompt.
func (t *turn) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		t.requested(u.Meta.Usage)
		t.talk("message", u.MessageID, readBlock(u.Content))
	case "agent_thought_chunk":
		t.talk("thought", u.MessageID, readBlock(u.Content))
	case "user_message_chunk":
		// Our own words: they stand in the log already.
	case "tool_call", "tool_call_update":
		t.flushTalk()
		t.upsert(u.callUpdate, u.Content)
	case "plan":
		t.flushTalk()
		t.emit(keeper.Plan(core.Map(u.Entries, func(e planEntry) fleet.Step { return fleet.Step{Text: e.Content, Status: e.Status} })))
	case "usage_update":
		t.s.spend(u)
	}
}

// block is a content block: text, image, audio, resource_link or resource.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// readBlock turns a content block into text. One of a kind that is not known
// is kept as it came, so that nothing said is lost.
func readBlock(raw core.Raw) string {
	var b block
	if len(raw) == 0 {
		return ""
	}
	if jsonrpc.Decode(raw, &b) != nil {
		return core.ClipTo(string(raw), maxNoise)
	}
	switch b.Type {
	case "text":
		return b.Text
	case "image", "audio":
		return fmt.Sprintf("[%s %s, %d bytes]", b.Type, b.MimeType, len(b.Data)/4*3)
	case "resource_link":
		return fmt.Sprintf("[%s %s]", b.Name, b.URI)
	case "resource":
		if b.Resource != nil {
			return fmt.Sprintf("[%s]\n%s", b.Resource.URI, b.Resource.Text)
		}
	}
	return "[unknown content] " + core.ClipTo(string(raw), maxNoise)
}

// leadsHere reports whether its processes reach ports of the engine's: what has no
// wall on a host has that host's network.
func (p place) leadsHere() bool { return p.there == nil || p.Spec.Wall.Profile != cell.Open }

// servers are those that a session is given.
func (a *agent) servers(pe *peer) ([]acp.McpServer, error) {
	program := ""
	if t := a.place.there; t != nil {
		switch program = t.Hosts.Program(t.Spec.Whose.Tenant, t.Host); {
		case !a.place.leadsHere():
			return nil, core.Errorf(core.Unavailable, "an open agent on a host has no way to the engine")
		case !cell.HasPorts(pe.Proc.Missing()):
			return nil, core.Errorf(core.Unavailable, "host %s gives it no network of its own, and so no way to the engine", t.Host)
		case program == "":
			return nil, core.Errorf(core.Unavailable, "host %s has not said where this program is", t.Host)
		}
	}
	return a.r.Servers(a.rec, program)
}

// command is one that the agent offers for a prompt's beginning. They are sent as text.
type command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Input       core.Raw `json:"input"`
}

// mostCommands is how many are taken from one update.
const mostCommands = 1000

// commandsChanged takes what the agent says of its commands: each time all of them.
func (s *session) commandsChanged(all []command) {
	var list []fleet.Command
	for _, c := range all[:min(len(all), mostCommands)] {
		var input struct {
			Hint string `json:"hint"`
		}
		if len(c.Input) > 0 && jsonrpc.Decode(c.Input, &input) != nil {
			input.Hint = "" // a kind of input that is not known
		}
		list = append(list, fleet.Command{Name: c.Name, Description: c.Description, Hint: input.Hint})
	}
	s.mu.Lock()
	s.commands = list
	learned := s.learned
	s.mu.Unlock()
	if learned { // else it is told with what the session begins with
		s.publish()
	}
}

// item is one thing that came for a session: an update, a request, or a mark
// that tells when everything before it has been dealt with.
type item struct {
	update  core.Raw
	request *jsonrpc.Request
	mark    chan struct{}
}

func (it item) size() int {
	n := 64 + len(it.update) // each costs something
	if it.request != nil {
		n += len(it.request.Params)
	}
	return n
}

// maxInbox bounds, in bytes, what waits for a log that falls behind. Past it
// the process is not read from, which slows it; nothing is lost.
const (
	maxInbox      = 32 << 20
	maxInboxItems = 50_000
)

// inbox keeps what came for a session in its order.
type inbox struct {
	mu     sync.Mutex
	moved  *sync.Cond
	items  []item
	bytes  int
	closed bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.moved = sync.NewCond(&b.mu)
	return b
}

// put adds an item; it waits only past the bounds. False when it is closed.
func (b *inbox) put(it item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && (b.bytes > maxInbox || len(b.items) >= maxInboxItems) {
		b.moved.Wait()
	}
	if b.closed {
		return false
	}
	b.items = append(b.items, it)
	b.bytes += it.size()
	b.moved.Broadcast()
	return true
}

// take waits for the next item; false when the inbox is closed and empty.
func (b *inbox) take() (item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == 0 && !b.closed {
		b.moved.Wait()
	}
	if len(b.items) == 0 {
		return item{}, false
	}
	it := b.items[0]
	b.items = b.items[1:]
	b.bytes -= it.size()
	b.moved.Broadcast()
	return it, true
}

// close lets take empty it and then end.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.moved.Broadcast()
}
