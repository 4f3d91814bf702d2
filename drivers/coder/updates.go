package coder

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/coder/coder/v2/codersdk/drpcsdk"
	tailnet "github.com/coder/coder/v2/tailnet/proto"
	"github.com/coder/websocket"
	"github.com/google/uuid"
	"github.com/hashicorp/yamux"

	"swarmdeck/engine/core"
)

const (
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 30 * time.Second
	// streamBackoff is the longest pause before the stream of all workspaces is
	// asked for again. There is one for all agents, and each looks again with it.
	streamBackoff = 2 * time.Second
	// safetyEvery is the slow read beside the streams.
	safetyEvery = time.Minute
	// updatesVersion of the tailnet protocol has WorkspaceUpdates.
	updatesVersion = "2.3"
)

// backoff grows from firstBackoff to lastBackoff, with jitter: many agents
// must not come back at once.
type backoff struct{ failed int }

func (b *backoff) next() time.Duration {
	wait := core.Backoff(b.failed, firstBackoff, lastBackoff)
	b.failed++
	return wait/2 + rand.N(wait/2+1)
}

func (b *backoff) reset() { b.failed = 0 }

// follow keeps the stream of all the owner's workspaces open until ctx ends.
// It says which to look at again; what they are is read from themselves. A
// server without the stream costs nothing but the delay of the safety read.
func (s *site) follow(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil {
		began := time.Now()
		_ = s.updates(ctx) // the agents see for themselves whether the server is there
		if time.Since(began) > lastBackoff {
			pause.reset()
		}
		if core.Within(ctx.Done(), min(pause.next(), streamBackoff)) {
			return
		}
	}
}

// updates reads one stream to its end.
func (s *site) updates(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	me, err := call(ctx, "read the token's owner", func(ctx context.Context) (codersdk.User, error) {
		return s.client.User(ctx, codersdk.Me)
	})
	if err != nil {
		return err
	}
	dialing, dialed := context.WithTimeout(ctx, callLimit)
	conn, err := s.client.Dial(dialing, apiPath+"tailnet?version="+updatesVersion, &websocket.DialOptions{HTTPClient: s.client.HTTPClient})
	dialed()
	if err != nil {
		return explain("open the stream of workspaces", err)
	}
	ctx, wire := codersdk.WebsocketNetConn(ctx, conn, websocket.MessageBinary)
	defer wire.Close()
	config := yamux.DefaultConfig() // it sends keep-alives
	config.LogOutput = io.Discard
	session, err := yamux.Client(wire, config)
	if err != nil {
		return explain("open the stream of workspaces", err)
	}
	defer session.Close()
	stream, err := tailnet.NewDRPCTailnetClient(drpcsdk.MultiplexedConn(session)).
		WorkspaceUpdates(ctx, &tailnet.WorkspaceUpdatesRequest{WorkspaceOwnerId: me.ID[:]})
	if err != nil {
		return explain("open the stream of workspaces", err)
	}
	defer s.setLive(false)
	for first := true; ; first = false {
		update, err := stream.Recv()
		if err != nil {
			return explain("read the stream of workspaces", err)
		}
		if first {
			s.setLive(true)
		}
		s.tell(touched(update))
	}
}

// touched lists the workspaces that an update is about; never nil.
func touched(u *tailnet.WorkspaceUpdate) []uuid.UUID {
	ids := []uuid.UUID{}
	add := func(b []byte) {
		if id, err := uuid.FromBytes(b); err == nil {
			ids = append(ids, id)
		}
	}
	for _, list := range [][]*tailnet.Workspace{u.UpsertedWorkspaces, u.DeletedWorkspaces} {
		for _, w := range list {
			add(w.Id)
		}
	}
	for _, list := range [][]*tailnet.Agent{u.UpsertedAgents, u.DeletedAgents} {
		for _, a := range list {
			add(a.WorkspaceId)
		}
	}
	return ids
}
