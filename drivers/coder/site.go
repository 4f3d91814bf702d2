package coder

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
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
	// callLimit bounds one call; the first one to an agent takes about 5 s.
	callLimit = 30 * time.Second
	// catalogAge is how long the list of templates is taken as it is. What a
	// template version offers never changes, and is kept for ever.
	catalogAge = 15 * time.Second
)

// site is one deployment as one user sees it. Agents share it.
type site struct {
	client *codersdk.Client
	http   *transport

	mu       sync.Mutex
	users    int
	stop     context.CancelFunc // of the stream, while there are users
	live     bool               // the stream is there
	agents   map[uuid.UUID]*agent
	projects []project
	read     time.Time
	versions map[uuid.UUID]offer
}

func newSite(s settings) (*site, error) {
	home, err := s.address()
	if err != nil {
		return nil, err
	}
	t := newTransport(home, s.token)
	// The transport adds the token, so the client is given none.
	return &site{
		client: codersdk.New(home, codersdk.WithHTTPClient(t.client())), http: t,
		agents: map[uuid.UUID]*agent{}, versions: map[uuid.UUID]offer{},
	}, nil
}

// call runs one call with its time limit and explains its failure.
func call[T any](ctx context.Context, what string, do func(ctx context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithTimeout(ctx, callLimit)
	defer stop()
	v, err := do(ctx)
	return v, explain(what, err)
}

// workspace reads one workspace. One that was deleted is not found.
func (s *site) workspace(ctx context.Context, id uuid.UUID) (*codersdk.Workspace, error) {
	ws, err := call(ctx, "read the workspace", func(ctx context.Context) (codersdk.Workspace, error) {
		return s.client.Workspace(ctx, id)
	})
	return &ws, err
}

// named finds the token's owner's workspace of a name.
func (s *site) named(ctx context.Context, name string) (*codersdk.Workspace, error) {
	ws, err := call(ctx, "look for a workspace named "+name, func(ctx context.Context) (codersdk.Workspace, error) {
		return s.client.WorkspaceByOwnerAndName(ctx, codersdk.Me, name, codersdk.WorkspaceOptions{})
	})
	return &ws, err
}

// build asks for a transition.
func (s *site) build(ctx context.Context, id uuid.UUID, to codersdk.WorkspaceTransition, orphan bool) error {
	_, err := call(ctx, string(to)+" the workspace", func(ctx context.Context) (codersdk.WorkspaceBuild, error) {
		return s.client.CreateWorkspaceBuild(ctx, id, codersdk.CreateWorkspaceBuildRequest{
			Transition: to, Reason: codersdk.CreateWorkspaceBuildReasonCLI, Orphan: orphan,
		})
	})
	return err
}

// cancelBuild stops a build that is under way. The template may forbid it.
func (s *site) cancelBuild(ctx context.Context, build uuid.UUID) error {
	_, err := call(ctx, "cancel the build", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.client.CancelWorkspaceBuild(ctx, build, codersdk.CancelWorkspaceBuildParams{})
	})
	return err
}

// join counts an agent in and says where its workspace's news go.
func (s *site) join(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		go s.follow(ctx)
	}
}

// leave counts it out; the last one ends the stream.
func (s *site) leave(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, other := range s.agents {
		if other == a {
			delete(s.agents, id)
		}
	}
	if s.users--; s.users == 0 {
		s.stop()
		s.http.closeIdle()
	}
}

// claim has the news of a workspace told to an agent.
func (s *site) claim(id uuid.UUID, a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[id] = a
}

// tell stirs the agents of these workspaces; all of them for nil.
func (s *site) tell(ids []uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ids == nil {
		for _, a := range s.agents {
			a.stir()
		}
		return
	}
	for _, id := range ids {
		if a := s.agents[id]; a != nil {
			a.stir()
		}
	}
}

// streams says whether the deployment tells of its own when a workspace
// changes.
func (s *site) streams() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

func (s *site) setLive(live bool) {
	s.mu.Lock()
	s.live = live
	s.mu.Unlock()
	s.tell(nil) // it is back, or must be watched otherwise
}

// busyBuild reports a build that has not ended.
func busyBuild(ws *codersdk.Workspace) bool {
	switch ws.LatestBuild.Job.Status {
	case codersdk.ProvisionerJobPending, codersdk.ProvisionerJobRunning, codersdk.ProvisionerJobCanceling:
		return true
	}
	return false
}

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
