package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// TestWorkersKilledAtAnyInstantLeaveAllOrNothing kills workers while agents
// work. What was answered is in the journal and nothing else is; what was not
// says so and can be tried again.
func TestWorkersKilledAtAnyInstantLeaveAllOrNothing(t *testing.T) {
	p := rig(t, "real", func(o *Options) { o.Max = 2 })
	e := engineOn(t, p)
	crew := []string{"ann", "ben", "cat"}
	for _, id := range crew {
		agent(t, e, id, "modeler")
	}
	points, _ := strconv.Atoi(cmp.Or(os.Getenv("POOL_POINTS"), "25")) // of each agent
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(points)*10*time.Second)
	defer stop()
	var killer, all sync.WaitGroup
	stored := make(chan bool, 100)
	kills := 0
	killer.Go(func() {
		for r := rand.New(rand.NewPCG(1, 2)); ; {
			for range 1 + r.IntN(8) { // so that the work goes on
				select {
				case <-ctx.Done():
					return
				case <-stored:
				}
			}
			for range r.IntN(2000) { // at any instant of the next
				runtime.Gosched()
			}
			p.mu.Lock()
			if n := len(p.workers); n > 0 && kill(p.workers[r.IntN(n)]) {
				kills++
			}
			p.mu.Unlock()
		}
	})
	var made, lost atomic.Int64
	for _, id := range crew {
		all.Go(func() {
			for n := 0; n < points; {
				_, err := e.CAD.Execute(ctx, alice, cad.Operation{AgentID: id, Method: "entity.create_point", Params: core.Raw(fmt.Sprintf(`{"x":%d,"y":0}`, n))})
				var f *cad.OpError
				switch {
				case err == nil:
					n++
					made.Add(1)
					stored <- true
				case errors.As(err, &f) && f.Class == cad.SubprocessError && f.Retryable && lost.Add(1) < int64(12*points):
				default:
					t.Errorf("%s: %v", id, err)
					return
				}
			}
		})
	}
	all.Wait()
	stop()
	killer.Wait()
	t.Logf("%d operations stored, %d lost to %d kills", made.Load(), lost.Load(), kills)
	for _, id := range crew {
		entries := expect.Of(e.CAD.Journal(t.Context(), alice.Tenant, "ws_"+id, 1))(t)
		content, err := model.Load(entries)
		if err != nil || content.Len() != points || content.Seq() != points+1 {
			t.Errorf("%s: %d entities after %d entries, %v", id, content.Len(), content.Seq(), err)
		}
		a, err := e.CAD.Agent(t.Context(), alice.Tenant, id)
		expect.True(t, err == nil && a.SuccessCount == points && a.OperationCount == a.SuccessCount+a.ErrorCount && a.Status == cad.Idle, "%+v, %v", a, err)
	}
	deltas, err := e.Reconcile(t.Context(), alice.Tenant)
	expect.True(t, err == nil && len(deltas) == 0, "%+v, %v", deltas, err)
}

// kill ends a worker's process if it has begun.
func kill(w *worker) bool {
	return w.proc != nil && syscall.Kill(w.proc.PID(), syscall.SIGKILL) == nil
}
