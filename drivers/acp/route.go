package acp

import (
	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

const (
	maxWaits = 256     // requests of one process that wait for a command
	maxEarly = 1 << 20 // bytes for sessions that are not known yet
)

// notOne is why a program is ended that asks us what we asked it.
const notOne = "it gives back what it is told: it does not speak the Agent Client Protocol"

// handle takes a request or notification off the wire and puts it where its
// session finds it. It waits only while that session's inbox is full.
func (pe *peer) handle(r *jsonrpc.Request) {
	if !r.Wants() {
		if r.Method != acp.ClientMethodSessionUpdate {
			pe.Hear(fleet.Event{Type: "log", Level: "DEBUG", Text: "unknown notification " + core.ClipTo(r.Method, 128) + " " + core.ClipTo(string(r.Params), maxNoise)})
			return
		}
		var n struct {
			SessionID string   `json:"sessionId"`
			Update    core.Raw `json:"update"`
		}
		if err := jsonrpc.Decode(r.Params, &n); err != nil || n.Update.Kind() != '{' {
			pe.Hear(fleet.Event{Type: "log", Level: "WARN", Text: "an update without a content: " + core.ClipTo(string(r.Params), maxNoise)})
			return
		}
		pe.deliver(n.SessionID, item{update: n.Update})
		return
	}
	if r.Method == acp.AgentMethodInitialize {
		pe.end(notOne, cell.Grace{Interrupt: -1})
		return
	}
	if !served(r.Method) {
		r.Fail(jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s is not served", core.ClipTo(r.Method, 128)))
		return
	}
	var to struct {
		SessionID string `json:"sessionId"`
	}
	if err := jsonrpc.Decode(r.Params, &to); err != nil {
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidParams, "%v", err))
		return
	}
	if to.SessionID == "" && r.Method == askPerson { // a common library leaves it out
		to.SessionID = pe.only()
	}
	pe.deliver(to.SessionID, item{request: r})
}

// only is the id of the one session that there is, "" where there are more.
func (pe *peer) only() string {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	if len(pe.sessions) != 1 {
		return ""
	}
	for id := range pe.sessions {
		return id
	}
	return ""
}

// deliver puts an item into the inbox of its session. Some agents speak of a
// session before we have been told its id: that waits for it.
func (pe *peer) deliver(id string, it item) {
	pe.mu.Lock()
	s := pe.sessions[id]
	if s == nil && pe.opening > 0 && pe.earlySize()+it.size() < maxEarly {
		pe.early[id] = append(pe.early[id], it)
		pe.mu.Unlock()
		return
	}
	pe.mu.Unlock()
	if s != nil && s.inbox.put(it) {
		return
	}
	if it.request != nil {
		it.request.Fail(unknownSession(id))
		return
	}
	pe.Hear(fleet.Event{Type: "log", Level: "WARN", Text: "an update of an unknown session " + core.ClipTo(id, 80)})
}

func (pe *peer) earlySize() (n int) {
	for _, items := range pe.early {
		for _, it := range items {
			n += it.size()
		}
	}
	return n
}

// await counts the sessions that are being opened.
func (pe *peer) await(n int) {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	if pe.opening += n; pe.opening > 0 {
		return
	}
	for id, items := range pe.early {
		for _, it := range items {
			if it.request != nil {
				it.request.Fail(unknownSession(id))
			}
		}
	}
	clear(pe.early)
}

func unknownSession(id string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.InvalidParams, "there is no session %q", core.ClipTo(id, 80))
}

// adopt makes a session known and starts it. Two agents must never share one.
func (pe *peer) adopt(s *session) error {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	if pe.sessions[s.id] != nil {
		return core.Errorf(core.Unavailable, "the agent gave two sessions the id %s", core.ClipTo(s.id, 80))
	}
	early := pe.early[s.id]
	delete(pe.early, s.id)
	pe.sessions[s.id] = s
	for _, it := range early {
		s.inbox.put(it) // bounded by maxEarly: it does not wait
	}
	go s.pump()
	return nil
}

// drop forgets a session.
func (pe *peer) drop(s *session) {
	pe.mu.Lock()
	if pe.sessions[s.id] == s {
		delete(pe.sessions, s.id)
	}
	pe.mu.Unlock()
	s.close()
}
