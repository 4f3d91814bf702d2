package mcp

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/expect"
)

func TestWhatAServerAnnouncesIsInTheRecordOfRunsThatGoOn(t *testing.T) {
	h, _ := guests(t)
	ctx := t.Context()
	live := expect.Of(h.eng.DAG.Record(ctx, core.Self(lab, "recorder"), dag.RunInfo{AgentID: "Sony", Reason: "user"}))(t)
	for range 2 {
		_, r := h.ends(t, alice, "actor", "announce", "{}")
		expect.Must(t, r.Status == task.Succeeded, "%+v", r.Error)
	}
	var found []dag.Recorded
	expect.Await(t, "the notice", func() bool {
		page, err := h.eng.DAG.Events(ctx, lab, dag.Query{Filter: core.Filter{Agent: "Sony", Kind: string(dag.KindMCPListChanged)}})
		found = page.Items
		return err == nil && len(found) > 0
	})
	e := found[0].Event
	expect.True(t, e.RunID == live.RunID() && e.Body.(*dag.MCPListChanged).Server == "actor", "%+v", e)
}

// ear notes what it is told, after it has refused some.
type ear struct {
	mu      sync.Mutex
	refuses int
	told    []string
}

func (e *ear) Announced(_ context.Context, _, server string, list bool, uris []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuses > 0 {
		e.refuses--
		return core.Errorf(core.Unavailable, "not now")
	}
	if list {
		uris = append(uris, "*")
	}
	e.told = append(e.told, append([]string{server}, uris...)...)
	return nil
}

func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.told)
}

func TestAServerThatAnnouncesWithoutEndIsHeardNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &ear{refuses: 1}
		c := NewClient(nil, ClientOptions{})
		c.Open(nil, e, nil)
		l := expect.Of(c.link(tools.Server{TenantID: lab, Name: "s", Command: []string{"x"}}))(t)
		defer l.end()
		l.says.updated(t.Context(), &mcp.ResourceUpdatedNotificationRequest{})
		l.says.updated(t.Context(), &mcp.ResourceUpdatedNotificationRequest{Params: &mcp.ResourceUpdatedNotificationParams{URI: "file:///a\u202e"}})
		l.says.updated(t.Context(), &mcp.ResourceUpdatedNotificationRequest{Params: &mcp.ResourceUpdatedNotificationParams{URI: "file:///a"}})
		time.Sleep(5 * time.Second)
		if want := []string{"s", "file:///a", "*"}; !slices.Equal(e.heard(), want) {
			t.Errorf("heard %q, want %q", e.heard(), want)
		}
		for range 3600 {
			for range maxAnnounced + 1 {
				l.says.updated(t.Context(), &mcp.ResourceUpdatedNotificationRequest{Params: &mcp.ResourceUpdatedNotificationParams{URI: core.NewTrace(nil)}})
			}
			time.Sleep(time.Second)
		}
		n := len(e.heard())
		expect.True(t, n <= 80*(maxAnnounced+2), "heard %d things in an hour", n)
	})
}
