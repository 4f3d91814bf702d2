package coder

import (
	"context"
	"sync"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"
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
