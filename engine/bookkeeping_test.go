package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// readers is a runtime whose agents read files, talk, and spend tokens.
type readers struct{ asleep }

func (readers) Open(_ context.Context, _ fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	notify(fleet.Health{Status: fleet.Idle, PID: 1})
	return readerHandle{}, nil
}

type readerHandle struct{ fleet.Handle }

func (readerHandle) Interrupt()                   {}
func (readerHandle) Pause(context.Context) error  { return nil }
func (readerHandle) Resume(context.Context) error { return nil }
func (readerHandle) Stop(context.Context) error   { return nil }
func (readerHandle) Close() error                 { return nil }

const readsEach = 12

func (readerHandle) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	for i := range readsEach {
		id := fmt.Sprint("c", i)
		for _, e := range []fleet.Event{
			{Type: "message", Text: "I look at the next of the files."},
			{Type: "tool_request", CallID: id, Tool: "fs.read", Args: core.Raw(fmt.Sprintf(`{"path":"src/file%d.go"}`, i)), Intent: "read a file"},
			{Type: "tool_result", CallID: id, Status: "ok", Output: core.Raw(`{"bytes":1200,"text":"package main\n\nfunc main() {}"}`)},
			{Type: "usage", Tokens: 900, CostUSD: 0.01},
		} {
			p.Beat()
			if _, err := p.Emit(ctx, e); err != nil {
				return task.Outcome{}, err
			}
		}
	}
	return task.Outcome{Status: task.Succeeded, Output: core.Raw(`{"text":"done"}`)}, nil
}

// TestBookkeepingIsASmallPartOfTheLog has 30 agents at work, and looks at what that
// leaves in the audit log. In a bubble nothing is written because time has passed.
func TestBookkeepingIsASmallPartOfTheLog(t *testing.T) { synctest.Test(t, bookkeeping) }

func bookkeeping(t *testing.T) {
	const agents = 30
	_, st := open(t)
	e := expect.Of(Open(t.Context(), Options{Store: st, Runtimes: map[string]fleet.Runtime{"exec": readers{}}}))(t)
	defer e.Close()
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant))(t)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	defer running.Wait()
	defer stop()
	bell := e.Watch(t.Context())
	var tasks []string
	for i := range agents {
		name := fmt.Sprint("ada-", i)
		expect.Of(e.Fleet.Create(t.Context(), alice, fleet.Create{Name: name, Project: "p", Role: "r", Command: []string{"x"}}))(t)
		given := swarm.Dispatch{Kind: fleet.KindPrompt, Input: core.Raw(`{"agent":"` + name + `","message":"look at the files"}`)}
		tasks = append(tasks, expect.Of(e.Swarm.Dispatch(t.Context(), alice, given))(t).TaskID)
	}
	succeeded := func(id string) bool {
		got := expect.Of(e.Tasks.Get(t.Context(), alice.Tenant, id))(t)
		expect.Must(t, got.Status == task.Succeeded || !got.Status.Terminal(), "%+v", got)
		return got.Status == task.Succeeded
	}
	for len(tasks) > 0 {
		if tasks = slices.DeleteFunc(tasks, succeeded); len(tasks) > 0 {
			<-bell
		}
	}
	stop()
	running.Wait()

	log := of(t, e.Audit.List)
	var books, bytes, booked, digests int
	kinds := map[string]int{}
	for _, ev := range log {
		n := len(core.MustEncode(ev))
		bytes += n
		kinds[ev.EventType]++
		if ev.Routine {
			books++
			booked += n
			continue
		}
		for _, row := range expect.Of(ev.Data())(t).Rows {
			digests += len(row) + len(`"",`)
		}
	}
	inSight := of(t, e.Audit.Told)
	seen := 0
	for _, ev := range inSight {
		if !tells(ev.EventType) {
			seen++
		}
	}
	figures := fmt.Sprintf("%d events of %d bytes; in sight %d, of these %d bookkeeping; bookkeeping %d events of %d bytes, digests in others %d bytes: %v",
		len(log), bytes, len(inSight), seen, books, booked, digests, kinds)
	expect.True(t, 20*seen <= len(inSight), "more than 5 %% of what is in sight is bookkeeping: %s", figures)
	expect.True(t, 5*books <= len(log), "more than 20 %% of the events are bookkeeping: %s", figures)
	expect.True(t, 10*booked <= 4*bytes, "more than 40 %% of the bytes are bookkeeping: %s", figures)
	expect.True(t, 100*(booked+digests) <= 55*bytes, "more than 55 %% of the bytes are bookkeeping and digests: %s", figures)
	expect.True(t, kinds["tool.requested"] == agents*readsEach && kinds["tool.result"] == agents*readsEach, "what was done is not told: %s", figures)
	expect.Is(t, len(expect.Of(e.Reconcile(t.Context(), alice.Tenant))(t)), 0, "differences")
}

// tells reports a type of events that tell of decisions, effects, failures or people.
func tells(eventType string) bool {
	area, _, _ := strings.Cut(eventType, ".")
	return slices.Contains([]string{"task", "judge", "tool", "tenant", "policy", "project", "role"}, area) ||
		slices.Contains([]string{"agent.created", "agent.status", "audit.key"}, eventType)
}

// of reads a list of events to its end.
func of(t *testing.T, list func(context.Context, string, core.Filter) (core.Page[audit.Event], error)) (all []audit.Event) {
	for f := (core.Filter{Page: 1, Size: core.MaxPageSize}); ; f.Page++ {
		page := expect.Of(list(t.Context(), alice.Tenant, f))(t)
		if all = append(all, page.Items...); !page.Info.Next {
			return all
		}
	}
}
