package acp

import (
	"context"
	"fmt"
	"slices"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
)

// pool holds the processes of all agents, by the key of their places.
//
// Lock order: agent.mu, then pool.mu, then peer.mu, then what is below them.
type pool struct {
	r *Runtime

	mu    sync.Mutex
	peers map[string][]*peer
}

// join gives an agent the process of its place, and starts one unless there is
// one that it can use. Who joined must leave.
func (p *pool) join(ctx context.Context, a *agent) (*peer, error) {
	p.mu.Lock()
	var found *peer
	for _, pe := range p.peers[a.place.key] {
		if pe.welcomes(a) {
			found = pe
			break
		}
	}
	if found == nil {
		found = &peer{
			Run: &keeper.Run{Over: make(chan struct{})}, pool: p, place: a.place, ready: make(chan struct{}), members: map[*agent]struct{}{},
			sessions: map[string]*session{}, early: map[string][]item{}, paused: map[*agent]struct{}{},
		}
		p.peers[a.place.key] = append(p.peers[a.place.key], found)
		found.admit(a)
		go found.run()
	} else {
		found.admit(a)
	}
	p.mu.Unlock()
	select {
	case <-found.ready:
	case <-ctx.Done():
		_ = p.leave(context.WithoutCancel(ctx), found, a)
		return nil, keeper.ErrStopped
	}
	if found.failure != nil {
		a.Mu.Lock()
		a.Keep.Said = found.lastLines()
		a.Mu.Unlock()
		_ = p.leave(ctx, found, a)
		return nil, found.failure
	}
	return found, nil
}

// leave gives a process up. It ends with its last agent; leave returns when
// that is done, or with ctx.
func (p *pool) leave(ctx context.Context, pe *peer, a *agent) error {
	p.mu.Lock()
	last, sessions := pe.dismiss(a)
	p.mu.Unlock()
	for _, s := range sessions {
		if has(pe.can.AgentCapabilities.SessionCapabilities.Close) && !last {
			pe.conn.Start(acp.AgentMethodSessionClose, acp.CloseSessionRequest{SessionId: acp.SessionId(s.id)})
		}
		s.close()
	}
	if !last {
		return nil
	}
	pe.end("nobody needs it any more", cell.Grace{Interrupt: -1})
	return pe.gone(ctx)
}

// forget takes a process out that has ended.
func (p *pool) forget(pe *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := pe.place.key
	p.peers[key] = slices.DeleteFunc(p.peers[key], func(o *peer) bool { return o == pe })
	if len(p.peers[key]) == 0 {
		delete(p.peers, key)
	}
}

// gone waits until nothing of a process is left.
func (pe *peer) gone(ctx context.Context) error {
	select {
	case <-pe.Over:
		return pe.stopErr
	case <-ctx.Done():
		return fmt.Errorf("wait for the agent's process to end: %w", ctx.Err())
	}
}

// Sharing names the agents that share the process of a run now, sorted; none
// for the run of one agent alone.
func (r *Runtime) Sharing(run string) (names []string) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	for _, pe := range r.pool.peers[run] {
		if !pe.place.Shared {
			continue
		}
		pe.mu.Lock()
		for _, a := range pe.agents() {
			names = append(names, a.rec.Name)
		}
		pe.mu.Unlock()
	}
	slices.Sort(names)
	return slices.Compact(names)
}
