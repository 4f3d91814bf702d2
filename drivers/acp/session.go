package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// session is one conversation of an agent in a process.
type session struct {
	id    string
	a     *agent
	pe    *peer
	inbox *inbox
	done  chan struct{}        // closed when nothing that came is left to deal with
	turn  atomic.Pointer[turn] // whom the updates belong to; nil between prompts

	// Replayed history is not logged again.
	replaying atomic.Bool
	replayed  atomic.Int64
	lastHeard atomic.Int64 // unix nanoseconds
	prompts   atomic.Int64 // sent so far
	told      atomic.Bool  // of a fork: what it goes on from
	keeping   sync.Mutex   // see keep
	adjusting sync.Mutex   // see adjust; taken before mu and the agent's

	mu        sync.Mutex
	mode      knob // of its permissions
	model     knob
	learned   bool            // what both are when the session begins
	commands  []fleet.Command // as the agent last said
	spent     spent
	terminals terminals
}

// Quiet time after which a replayed history is taken to be complete, and the
// longest wait for it.
const (
	replayQuiet = 300 * time.Millisecond
	replayLimit = 10 * time.Second
)

// open takes up the agent's conversation in a process, or begins one.
func (a *agent) open(ctx context.Context, pe *peer) (*session, error) {
	pe.await(1)
	defer pe.await(-1)
	servers, err := a.servers(pe)
	if err != nil {
		a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "the session goes without tools from outside: " + err.Error()})
	}
	if servers == nil {
		servers = []acp.McpServer{}
	}
	if m := a.place.recall(); m.Session != "" {
		s, err := a.resume(ctx, pe, &m, servers)
		if err != nil && ctx.Err() == nil && pe.conn.Err() == nil {
			a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "the earlier conversation could not be taken up: " + err.Error()})
		} else if err != nil || s != nil {
			return s, err
		}
	}
	var o opened
	err = pe.conn.Call(ctx, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: a.place.machine().Real(), McpServers: servers}, &o)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", pe.explain(err))
	}
	if o.SessionID == "" || len(o.SessionID) > maxSessionID {
		return nil, core.Errorf(core.Unavailable, "the agent gave its session the id %q", core.ClipTo(o.SessionID, 80))
	}
	s := a.newSession(pe, o.SessionID)
	s.learn(o)
	if err := pe.adopt(s); err != nil {
		return nil, err
	}
	s.keep()
	return s, nil
}

const maxSessionID = 1024

// resumes reports whether another process can take up what this one talks of.
func (pe *peer) resumes() bool {
	can := pe.can.AgentCapabilities
	return pe.place.Fresh || can.LoadSession || has(can.SessionCapabilities.Resume)
}

// resume takes up a session; nil without an error when the agent can't.
func (a *agent) resume(ctx context.Context, pe *peer, m *memory, servers []acp.McpServer) (*session, error) {
	id := m.Session
	can := pe.can.AgentCapabilities
	method := acp.AgentMethodSessionResume // it does not repeat the history
	if !has(can.SessionCapabilities.Resume) {
		method = acp.AgentMethodSessionLoad
		if !can.LoadSession {
			return nil, nil
		}
	}
	s := a.newSession(pe, id)
	s.spent = m.Spent
	s.told.Store(m.Told)
	s.replaying.Store(true)
	if err := pe.adopt(s); err != nil {
		return nil, err
	}
	var o opened
	err := pe.conn.Call(ctx, method, acp.LoadSessionRequest{SessionId: acp.SessionId(id), Cwd: a.place.machine().Real(), McpServers: servers}, &o)
	if err != nil {
		pe.drop(s)
		return nil, err
	}
	s.learn(o)
	if method == acp.AgentMethodSessionLoad { // the history may also come after the answer
		began := time.Now()
		s.lastHeard.CompareAndSwap(0, began.UnixNano())
		for time.Since(time.Unix(0, s.lastHeard.Load())) < replayQuiet && time.Since(began) < replayLimit {
			select {
			case <-time.After(replayQuiet / 6):
			case <-ctx.Done():
				pe.drop(s)
				return nil, context.Cause(ctx)
			}
		}
	}
	s.settle(ctx)
	s.replaying.Store(false)
	a.hear(fleet.Event{Type: "log", Level: "DEBUG", Text: fmt.Sprintf("took up the conversation %s (%d updates repeated)", id, s.replayed.Load())})
	return s, nil
}

func (a *agent) newSession(pe *peer, id string) *session {
	s := &session{id: id, a: a, pe: pe, inbox: newInbox(), done: make(chan struct{})}
	s.terminals.open = map[string]*terminal{}
	return s
}

func (s *session) used() bool { return s.prompts.Load() > 0 }

// explain adds what to do about a refused login.
func (pe *peer) explain(err error) error {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == authRequired {
		return fmt.Errorf("%w%s", err, pe.way())
	}
	return pe.blame(err)
}

const authRequired = -32000

// settle waits until everything that came so far has been dealt with.
func (s *session) settle(ctx context.Context) {
	mark := make(chan struct{})
	done := s.done
	if s.inbox.put(item{mark: mark}) {
		done = mark
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// pump deals with what comes, one thing after the other, until close.
func (s *session) pump() {
	defer close(s.done)
	for {
		it, ok := s.inbox.take()
		if !ok {
			return
		}
		switch {
		case it.mark != nil:
			close(it.mark)
		case it.request != nil:
			s.serve(it.request)
		default:
			s.update(it.update)
		}
	}
}

func (s *session) close() {
	s.inbox.close()
	s.terminals.close()
}

// memory is what is kept of a conversation.
type memory struct {
	Session string `json:"session"`
	Told    bool   `json:"told,omitzero"` // of a fork: what it goes on from
	Spent   spent  `json:"spent,omitzero"`
}

func (p place) recall() (m memory) {
	if p.Fresh {
		return memory{}
	}
	return keeper.Recall[memory](p.kept())
}

func (p place) remember(m memory) {
	if !p.Fresh {
		keeper.Remember(p.kept(), m)
	}
}

func (p place) kept() keeper.Memory {
	return keeper.Memory{Path: p.memory, Born: p.born, Command: p.Spec.Argv, Dir: p.Spec.Dir}
}
