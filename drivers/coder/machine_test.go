package coder

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func lockThread() { runtime.LockOSThread() }

var serial atomic.Int64

// machine is what a workspace of one template runs on: it starts the agent
// program when the workspace has come up and ends it when it goes down.
type machine struct {
	d       *deployment
	name    string // of the workspace, the agent and the template
	project string
	role    role
	client  *codersdk.Client
	// program, if set, makes what serves agentapi in place of the actor.
	program func() *exec.Cmd
}

// newMachine pushes a template for one workspace. Others of its traits come
// from the order.
func newMachine(t *testing.T, d *deployment, traits map[string]any) *machine {
	t.Helper()
	return newMachineOf(t, d, d.token, traits)
}

// newMachineOf is a machine for a workspace of the user with this token.
func newMachineOf(t *testing.T, d *deployment, token string, traits map[string]any) *machine {
	t.Helper()
	return setUp(t, d, token, traits, nil)
}

// setUp is a machine on which another program than the actor serves agentapi at an
// address, where one is given.
func setUp(t *testing.T, d *deployment, token string, traits map[string]any, program func(addr string) *exec.Cmd) *machine {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := l.Addr().String()
	l.Close()
	n := strconv.FormatInt(serial.Add(1), 10)
	m := &machine{d: d, name: "agent-" + n, project: "Project " + n}
	if program != nil {
		m.program = func() *exec.Cmd { return program(addr) }
	}
	o := map[string]any{
		"do": "template", "name": "template-" + n, "display": m.project, "app_url": "http://" + addr, "slug": defaultSlug,
		"presets": map[string]string{"coder": "You write code.", "reviewer": "You read it."},
	}
	for k, v := range traits {
		o[k] = v
	}
	own, _ := d.order(t, o)
	m.role = role{Listen: addr, Coder: d.url(), Token: own, Slug: defaultSlug}
	home := expect.Of(url.Parse(d.url()))(t)
	m.client = codersdk.New(home, codersdk.WithSessionToken(token))
	ctx, stop := context.WithCancel(context.Background())
	var end sync.WaitGroup
	end.Go(func() { m.run(ctx, t) })
	t.Cleanup(func() {
		stop()
		end.Wait()
		d.order(t, map[string]any{"do": "leave", "token": own})
	})
	return m
}

// run keeps the agent's program in step with the workspace.
func (m *machine) run(ctx context.Context, t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	as, _ := json.Marshal(m.role)
	var proc *exec.Cmd
	var gone chan struct{}
	var build uuid.UUID
	end := func() {
		if proc != nil {
			_ = syscall.Kill(-proc.Process.Pid, syscall.SIGKILL)
			<-gone
			proc = nil
		}
	}
	defer end()
	for !core.Within(ctx.Done(), 100*time.Millisecond) {
		ws, err := m.client.WorkspaceByOwnerAndName(ctx, codersdk.Me, m.name, codersdk.WorkspaceOptions{})
		if err != nil {
			continue
		}
		up := ws.LatestBuild.Status == codersdk.WorkspaceStatusRunning
		if !up || ws.LatestBuild.ID != build {
			end()
		}
		if !up {
			continue
		}
		if ws.LatestBuild.ID != build {
			build = ws.LatestBuild.ID
			m.d.order(t, map[string]any{"do": "agent", "token": m.role.Token})
		}
		if proc != nil {
			select {
			case <-gone: // it crashed: the template's script starts it again
				proc = nil
			default:
				continue
			}
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), actorEnv+"="+string(as))
		if m.program != nil {
			cmd = m.program()
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		done := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(done)
		}()
		proc, gone = cmd, done
	}
}

// record is the agent's, as the fleet would have it.
func (m *machine) record(t *testing.T, s settings) fleet.Agent {
	s.URL = m.d.url()
	if s.TokenFile == "" && s.TokenEnv == "" {
		s.TokenFile = tokenFile(t, m.d.token)
	}
	return fleet.Agent{
		Name: m.name, TenantID: "t_test", Runtime: "coder", Project: m.project, Role: "coder",
		CreatedAt: time.Now().UTC(), Options: core.MustEncode(s),
	}
}

func tokenFile(t *testing.T, token string) string {
	file := filepath.Join(t.TempDir(), "token")
	expect.No(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return file
}

func newRuntime(t *testing.T, opt Options) *Runtime {
	t.Helper()
	if opt.State == "" {
		opt.State = filepath.Join(t.TempDir(), "state")
	}
	r := expect.Of(New(opt))(t)
	t.Cleanup(func() { expect.Is(t, r.Close(), nil) })
	return r
}

// witness is one open agent and what it told.
type witness struct {
	t *testing.T
	fleet.Handle

	mu     sync.Mutex
	health []fleet.Health
	events []fleet.Event
}

func openAgent(t *testing.T, r *Runtime, rec fleet.Agent) *witness {
	t.Helper()
	w := &witness{t: t}
	h, err := r.Open(context.Background(), rec, func(h fleet.Health) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.health = append(w.health, h)
	})
	expect.No(t, err)
	w.Handle = h
	t.Cleanup(func() { _ = h.Close() })
	return w
}

func (w *witness) now() fleet.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.health) == 0 {
		return fleet.Health{}
	}
	return w.health[len(w.health)-1]
}

// was says whether it has told of a state.
func (w *witness) was(status fleet.AgentStatus) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.health, func(h fleet.Health) bool { return h.Status == status })
}

// await waits for a state and a text in its reason.
func (w *witness) await(status fleet.AgentStatus, reason string) (h fleet.Health) {
	w.t.Helper()
	expect.Await(w.t, fmt.Sprintf("%s %q", status, reason), func() bool {
		h = w.now()
		return h.Status == status && strings.Contains(h.Reason, reason)
	})
	return h
}

func (w *witness) emit(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	return fleet.ToolAnswer{}, nil
}

func (w *witness) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, e := range w.events {
		list = append(list, e.Type+" "+e.Text)
	}
	return strings.Join(list, "|")
}

func (w *witness) prompt(acts ...string) fleet.Prompt {
	return fleet.Prompt{TaskID: "tk_00000_0000000001", Message: strings.Join(acts, "\n"), Emit: w.emit, Beat: func() {}}
}

var noOptions codersdk.WorkspaceOptions

// awaitGone waits until the workspace is deleted.
func (m *machine) awaitGone(t *testing.T) {
	t.Helper()
	expect.Await(t, "the workspace is gone", func() bool {
		_, err := m.client.WorkspaceByOwnerAndName(context.Background(), codersdk.Me, m.name, noOptions)
		return err != nil && gone(explain("", err))
	})
}
