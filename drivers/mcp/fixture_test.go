package mcp

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/exec"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const (
	lab   = "t_lab"
	other = "t_other"
)

var (
	alice  = core.Caller{Tenant: lab, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	person = Identity{Tenant: lab, Name: "alice", Kind: core.Operator, Role: op.Operator}
	viewer = Identity{Tenant: lab, Name: "vera", Kind: core.Operator, Role: op.Viewer}
	sony   = Identity{Tenant: lab, Name: "Sony", Kind: core.Agent}
)

// eras are the two ways in which the protocol is spoken.
var eras = []string{"2025-11-25", "2026-07-28"}

// house is an engine that runs, with two tenants and one agent in each.
type house struct {
	eng *engine.Engine
	srv *Server
	dir string

	acknowledged atomic.Int64 // subscriptions of clients over pipes
}

func newHouse(t *testing.T, fill ...func(*engine.Options, *cell.Supervisor)) *house {
	t.Helper()
	h := &house{dir: t.TempDir()}
	path := filepath.Join(h.dir, "test.db")
	sealer, err := audit.OpenSealer(path + ".key")
	expect.No(t, err)
	db := expect.Of(store.Open(path, store.Options{Seal: sealer.Seal}))(t)
	sup := drivertest.Cells(t, cell.Options{Instance: "swarmdeck-mcp-test-" + core.NewTrace(nil)[:8]})
	runtime := expect.Of(exec.NewRuntime(sup, exec.RuntimeOptions{Dir: h.dir}))(t)
	runner := expect.Of(exec.NewRunner(sup, exec.RunnerOptions{Dir: h.dir}))(t)
	opt := engine.Options{
		Store: db, Sealer: sealer, Spill: filepath.Join(h.dir, "spill"),
		Runners: map[string]swarm.Runner{exec.Kind: runner}, Runtimes: map[string]fleet.Runtime{"exec": runtime},
		SkillRunners: map[string]skill.Runner{},
	}
	for _, f := range fill {
		f(&opt, sup)
	}
	h.eng = expect.Of(engine.Open(t.Context(), opt))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ran := expect.Later(func() error { return h.eng.Run(ctx) })
	h.srv = NewServer(h.eng, Options{Dir: h.dir})
	t.Cleanup(func() {
		_ = h.srv.Close()
		cancel()
		expect.Is(t, <-ran, nil)
		_ = h.eng.Close()
		expect.Is(t, db.Close(), nil)
	})
	for tenant, name := range map[string]string{lab: "Sony", other: "Papi"} {
		by := alice
		by.Tenant = tenant
		expect.Of(h.eng.Swarm.CreateTenant(t.Context(), by, tenant))(t)
		_, err = h.eng.Fleet.Create(t.Context(), by, fleet.Create{Name: name, Project: "P", Command: []string{"cat"}, Dir: h.dir})
		expect.No(t, err)
	}
	expect.Await(t, "Sony is idle", func() bool {
		a, err := h.eng.Fleet.Agent(t.Context(), lab, "Sony")
		return err == nil && a.Status == fleet.Idle
	})
	return h
}

// stdio connects a client over pipes.
func (h *house) stdio(t *testing.T, id Identity, era string, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := expect.Later(func() error { return h.srv.Stdio(ctx, id, inR, outW) })
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opt)
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				h.acknowledged.Add(1)
			}
			return next(ctx, method, r)
		}
	})
	cs := expect.Of(client.Connect(ctx, &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: era}))(t)
	t.Cleanup(func() {
		_ = cs.Close()
		cancel()
		_ = inR.Close()
		expect.Is(t, <-served, nil)
	})
	return cs
}

// web serves HTTP and returns its address.
func (h *house) web(t *testing.T, tokens *Tokens) string {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := expect.Later(func() error { return Serve(ctx, l, h.srv.Handler(tokens, lab)) })
	t.Cleanup(func() {
		cancel()
		expect.Is(t, <-served, nil)
	})
	return "http://" + l.Addr().String() + Path
}

// bearer shows a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects a client over HTTP.
func dial(t *testing.T, url, token, era string, opt *mcp.ClientOptions) (*mcp.ClientSession, error) {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opt).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err == nil {
		t.Cleanup(func() { _ = cs.Close() })
	}
	return cs, err
}

// use calls a tool and decodes its result into out.
func use(t *testing.T, cs *mcp.ClientSession, name string, args any, out any) {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	expect.No(t, err, name)
	said := r.Content[0].(*mcp.TextContent).Text
	expect.Must(t, !r.IsError, "%s: %s", name, said)
	if out != nil {
		expect.No(t, json.Unmarshal([]byte(said), out), name, "in", said)
	}
}

// refusal calls a tool that is to be refused and returns the error.
func refusal(t *testing.T, cs *mcp.ClientSession, name string, args any) core.Error {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	expect.No(t, err, name)
	var out struct {
		Error core.Error `json:"error"`
	}
	said := r.Content[0].(*mcp.TextContent).Text
	err = json.Unmarshal([]byte(said), &out)
	expect.Must(t, err == nil && r.IsError, "%s %v: not refused: %v %s", name, args, err, said)
	return out.Error
}

// events are the audit events of a type.
func (h *house) events(t *testing.T, tenant, kind string) []string {
	t.Helper()
	var found []string
	for seq := uint64(0); ; {
		events := expect.Of(h.eng.Audit.Since(t.Context(), tenant, seq, 1000))(t)
		if len(events) == 0 {
			return found
		}
		for _, e := range events {
			seq = e.Seq
			if e.EventType == kind {
				found = append(found, string(core.MustEncode(e)))
			}
		}
	}
}

// answer answers the next open approval for a tool, as an operator.
func (h *house) answer(t *testing.T, tool string, a judge.Answer) judge.Approval {
	t.Helper()
	var found judge.Approval
	expect.Await(t, "an approval for "+tool, func() bool {
		open := expect.Of(h.eng.Judge.Open(t.Context(), lab))(t)
		for _, o := range open {
			if o.Action.Tool == tool {
				found = o
				return true
			}
		}
		return false
	})
	by := alice
	by.Name = "olga"
	expect.Of(h.eng.Judge.Answer(t.Context(), by, found.ApprovalID, a))(t)
	return found
}

func has(list []string, part string) bool { return strings.Contains(strings.Join(list, "\n"), part) }

// What clients see of results.
type (
	agentView struct {
		fleet.Agent
		State      string `json:"state"`
		ApprovalID string `json:"approval_id"`
	}
	listAgentsAnswer struct {
		Agents []agentView `json:"agents"`
		core.PageInfo
	}
	projectsAnswer struct {
		Projects []fleet.Project `json:"projects"`
	}
	rolesAnswer struct {
		Roles []fleet.Role `json:"roles"`
	}
	historyAnswer struct {
		AgentName string              `json:"agent_name"`
		Tasks     []fleet.HistoryItem `json:"tasks"`
		core.PageInfo
	}
	cadAgentsAnswer struct {
		Agents []cad.Agent `json:"agents"`
		core.PageInfo
	}
	cadWorkspacesAnswer struct {
		Workspaces []cad.Workspace `json:"workspaces"`
	}
	logAnswer struct {
		Logs []task.LogLine `json:"logs"`
		core.PageInfo
	}
	agentAnswer struct {
		Agent   agentView `json:"agent"`
		Message string    `json:"message"`
	}
	messageAnswer struct {
		Message bus.Message `json:"message"`
	}
	taskAnswer struct {
		Task    task.Task `json:"task"`
		Message string    `json:"message"`
	}
)
