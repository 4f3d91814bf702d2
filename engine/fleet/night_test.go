package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// away is a store that can be gone, as a database whose server is.
type away struct {
	*store.DB
	gone *atomic.Bool
}

var errAway = errors.New("connection refused")

func (a away) View(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if a.gone.Load() {
		return errAway
	}
	return a.DB.View(ctx, tenant, fn)
}

func (a away) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if a.gone.Load() {
		return errAway
	}
	return a.DB.Update(ctx, tenant, fn)
}

// phone is who is told at night: how often of each thing.
type phone struct {
	mu  sync.Mutex
	got map[string]int
}

func (p *phone) Send(_ context.Context, _ notice.Notice, m notice.Message) error {
	var body struct {
		Type string       `json:"type"`
		Data notice.Event `json:"data"`
	}
	if err := core.DecodeStored(m.Body, &body); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got[body.Type+" "+body.Data.ID]++
	return nil
}

// TestANightWithoutAnybodyEndsNothingThatCouldGoOn: a crash, a budget, a login, a full disk, a
// database that is away. What each stops waits for the morning, as one item that was told once.
func TestANightWithoutAnybodyEndsNothingThatCouldGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agents, nobody, spender, works = 30, "a10", "a07", time.Minute
		midnight, gone, told := time.Now(), &atomic.Bool{}, &phone{got: map[string]int{}}
		w := newWorld(t)
		enginetest.File(t, w.DB)
		w.over = func(st store.Store) store.Store { return away{st.(*store.DB), gone} }
		var expired atomic.Bool
		w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
			if h.name == nobody && expired.Load() {
				now := time.Now()
				h.notify(fleet.Health{Status: fleet.Failed, Reason: "log in", Trouble: &fleet.Trouble{Reason: "log in", Since: now, Tries: 1, LastAt: now, NextAt: now.Add(time.Hour)}})
				out := killed
				out.Unsent = true
				return out, nil
			}
			for end := time.Now().Add(works); time.Now().Before(end); {
				select {
				case <-time.After(250 * time.Millisecond):
					p.Beat()
				case <-h.dead():
					return killed, nil
				}
			}
			return done(ctx, h, p)
		})
		open := func() {
			w.Open()
			w.run()
			n := notice.New(notice.Options{Ledger: w.Ledger, Approvals: w.judge, Sender: told, Tenants: w.DB.Tenants, Watch: w.Watch})
			_, _, err := n.Put(t.Context(), alice, notice.Notice{Name: "phone", Events: []string{"approval", "failure", "stuck"}, Command: []string{"say"}, Rate: 600})
			expect.No(t, err)
			w.Start(n.Run)
		}
		w.Close()
		open()
		until := func(hour, minute, second int) {
			time.Sleep(time.Until(midnight.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)))
			synctest.Wait()
		}
		var tasks []string
		dispatch := func(n int) {
			for i := range n {
				tk := expect.Of(w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
					Kind: fleet.KindPrompt, Input: core.MustEncode(map[string]string{"agent": fmt.Sprintf("a%02d", i), "message": "go on"}),
				}))(t)
				tasks = append(tasks, tk.TaskID)
			}
		}
		for i := range agents {
			w.create(fmt.Sprintf("a%02d", i))
		}
		expect.Of(w.swarm.Budgets.Set(t.Context(), alice, budget.Budget{Subject: "agent:" + spender, Tasks: 3}))(t)
		dispatch(agents)
		until(2, 59, 30)
		dispatch(3)
		until(3, 0, 0)
		w.crash()
		open()
		until(3, 30, 0) // the budget's third task, and one that must wait
		dispatch(agents)
		dispatch(agents)
		until(4, 0, 0)
		expired.Store(true)
		dispatch(agents)
		until(4, 30, 0)
		room := storetest.FillDisk(t, w.Path)
		until(5, 0, 0)
		room()
		until(5, 10, 0)
		gone.Store(true)
		until(5, 20, 0)
		gone.Store(false)
		until(6, 0, 0)
		dispatch(agents)
		until(8, 0, 0)

		open8 := expect.Of(w.judge.Open(t.Context(), home))(t)
		expect.True(t, len(open8) == 3+1, "it waits for %d answers in the morning: %+v", len(open8), open8)
		a := w.agent(nobody)
		expect.True(t, a.Needs() == "log in" && a.State() == "waiting for you", "%+v", a)
		for what, n := range told.got {
			expect.True(t, n == 1, "%s was told %d times", what, n)
		}
		expect.True(t, len(told.got) == len(open8)+1, "told of %v", told.got)
		expired.Store(false)
		expect.Of(w.fleet.Restart(t.Context(), alice, nobody))(t)
		for len(open8) > 0 {
			for _, ap := range open8 {
				expect.Of(w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true}))(t)
			}
			time.Sleep(time.Hour)
			open8 = expect.Of(w.judge.Open(t.Context(), home))(t)
		}
		for _, id := range tasks {
			now := expect.Of(w.tasks.Get(t.Context(), home, id))(t)
			expect.True(t, now.Status == task.Succeeded && now.Attempt == 0, "%s of %s: %s %s in attempt %d", id, now.Agent, now.Status, now.ErrorCode, now.Attempt)
		}
		w.consistent()
	})
}
