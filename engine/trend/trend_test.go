package trend_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/trend"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// rig is a world whose trends look at what a test says, in simulated time.
type rig struct {
	*enginetest.World
	trends *trend.Trends

	mu  sync.Mutex
	now trend.Now
}

// inTime runs a test in a bubble, in which agents have spent something before it begins.
func inTime(t *testing.T, test func(*testing.T, *rig), before ...trend.Spent) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{now: trend.Now{Agents: before}}
		r.World = enginetest.New(t, enginetest.Options{File: true, Tenants: []string{enginetest.Acme}, Build: func(w *enginetest.World) {
			r.trends = trend.New(trend.Options{Ledger: w.Ledger, Tenants: w.DB.Here, Look: r.look})
		}})
		r.Start(r.trends.Run)
		synctest.Wait() // it has looked once
		test(t, r)
		r.Stop()
	})
}

func (r *rig) look(string) (trend.Now, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, nil
}

// goes on for a time in a bubble, after a change of what is looked at.
func (r *rig) goes(d time.Duration, change func(*trend.Now)) {
	r.mu.Lock()
	change(&r.now)
	r.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
}

func still(*trend.Now) {}

// told are the points of a span in which something was.
func (r *rig) told(span string) (all []trend.Point) {
	o := expect.Of(r.trends.Overview(r.T.Context(), enginetest.Acme, span))(r.T)
	for _, p := range o.Points {
		if p.Working+p.Asking > 0 || p.Done > 0 {
			all = append(all, p)
		}
	}
	return all
}

func TestEachMinuteHasWhatCameWithinIt(t *testing.T) {
	ada := trend.Spent{Name: "ada", Project: "web", Tokens: 1000, CostUSD: 1}
	inTime(t, func(t *testing.T, r *rig) {
		began := time.Now().UTC().Truncate(time.Minute)
		r.goes(time.Minute, func(n *trend.Now) { n.Working = 2 }) // what was spent before is not new
		ada.Tokens, ada.CostUSD, ada.Tasks = 1500, 1.5, 1
		r.goes(time.Minute, func(n *trend.Now) {
			n.Working, n.Asking, n.WaitS, n.Done = 1, 3, 40, 1
			n.Agents = []trend.Spent{ada, {Name: "bob", Project: "web", Tokens: 7}}
		})
		r.goes(time.Hour/2, func(n *trend.Now) { *n = trend.Now{Done: 0, Agents: []trend.Spent{ada}} }) // a task has left: nothing was done
		minutes := r.told("hour")
		expect.Must(t, len(minutes) == 2, "%+v", minutes)
		expect.True(t, minutes[1].From.Equal(began.Add(time.Minute)) || minutes[1].From.Equal(began), "it is of %s, begun at %s", minutes[1].From, began)
		p := minutes[1]
		expect.True(t, p.Working == 1 && p.Asking == 3 && p.WaitS == 40 && p.Done == 1 && p.Tokens == 507 && p.CostUSD == 0.5, "%+v", p)
		by := expect.Of(r.trends.Overview(t.Context(), enginetest.Acme, "hour"))(t).Agents
		expect.True(t, len(by) == 2 && by[0].Spent == trend.Spent{Name: "ada", Project: "web", Tasks: 1, Tokens: 500, CostUSD: 0.5}, "%+v", by)
		quarters := r.told("day")
		expect.Must(t, len(quarters) == 1, "%+v", quarters)
		expect.True(t, quarters[0].Working == 2 && quarters[0].Asking == 3 && quarters[0].Tokens == 507, "%+v", quarters[0])
		r.Proven(enginetest.Acme)
	}, ada)
}

func TestAWeekOfWorkKeepsSoManyPointsAndNoMore(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		for hour := range int64(9 * 24) { // each hour an agent works for two minutes
			r.goes(2*time.Minute, func(n *trend.Now) { n.Working, n.Agents = 1, []trend.Spent{{Name: "ada", Tokens: hour}} })
			r.goes(58*time.Minute, func(n *trend.Now) { n.Working = 0 })
		}
		week, sum := r.told("week"), int64(0)
		for _, p := range week {
			sum += p.Tokens
		}
		expect.True(t, len(week) >= 167 && sum == int64(len(week)), "%d hours with %d tokens", len(week), sum)
		kept := 0
		r.No(r.DB.View(t.Context(), enginetest.Acme, func(tx store.Tx) error {
			return tx.Scan("trend", nil, nil, false, func(_, _ []byte) (bool, error) {
				kept++
				return true, nil
			})
		}))
		expect.True(t, kept <= 60+96+168, "%d points are kept", kept)
		r.Proven(enginetest.Acme)
	})
}

func TestWhoCostMostComesFirst(t *testing.T) {
	inTime(t, func(t *testing.T, r *rig) {
		r.goes(time.Minute, still)
		r.goes(time.Minute, func(n *trend.Now) {
			n.Agents = []trend.Spent{
				{Name: "ada", Project: "web", State: "working", CostUSD: 1, Tokens: 1},
				{Name: "bob", Project: "api", State: "failed", CostUSD: 3, Tokens: 1},
				{Name: "cy", Project: "web", State: "waiting for you", CostUSD: 2.5, Tokens: 1},
				{Name: "dan", Project: "api", State: "idle"},
			}
		})
		r.goes(time.Second, func(n *trend.Now) { n.Agents = slices.Clone(n.Agents); n.Agents[1].CostUSD++ }) // of this minute, and in no point yet
		o := expect.Of(r.trends.Overview(t.Context(), enginetest.Acme, "hour"))(t)
		expect.Is(t, o.Agents[0].CostUSD, 4.0, "what bob has cost so far")
		var names []string
		for _, s := range append(o.Agents, o.Projects...) {
			names = append(names, s.Name)
		}
		expect.Same(t, names, []string{"bob", "cy", "ada", "dan", "api", "web"})
		web := o.Projects[1]
		expect.True(t, web.CostUSD == 3.5 && web.Working == 1 && web.Waiting == 1 && o.Agents[0].Failing == 1, "%+v", o.Projects)
		expect.Fails(t, expect.Fault(r.trends.Overview(t.Context(), enginetest.Acme, "year")), "over", "was taken")
	})
}
