package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// journal is what an engine keeps of one workspace.
type journal struct {
	id      string
	entries []model.Entry
}

// do carries out an operation as the engine does: it loads what the worker
// lacks, and keeps what was changed.
func (j *journal) do(t testing.TB, p *Pool, method, params string) (core.Raw, error) {
	t.Helper()
	w := take(t, p, site(j.id))
	defer w.Release()
	if have := w.Seq(j.id); have < len(j.entries) {
		expect.No(t, w.Load(t.Context(), cad.Load{WorkspaceID: j.id, From: have + 1, Entries: j.entries[have:]}))
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	reply, err := w.Call(ctx, cad.Call{Method: method, Params: core.Raw(fmt.Sprintf(params, `"workspace_id":"`+j.id+`","agent_id":"a1"`))})
	if err == nil && reply.Entry != nil {
		j.entries = append(j.entries, *reply.Entry)
	}
	return reply.Data, err
}

func (j *journal) must(t testing.TB, p *Pool, method, params string) core.Raw {
	t.Helper()
	data, err := j.do(t, p, method, params)
	expect.No(t, err, method)
	return data
}

func opened(t testing.TB, p *Pool, id string) *journal {
	t.Helper()
	j := &journal{id: id}
	j.must(t, p, "workspace.create", `{%s,"workspace_name":"`+id+`","base_workspace_id":""}`)
	return j
}

const someBox = `{%s,"primitive_type":"box","width":10,"depth":20,"height":30}`

func TestAWorkspaceOutlivesItsProcess(t *testing.T) {
	p := rig(t, "real")
	j := opened(t, p, "ws")
	j.must(t, p, "solid.primitive", someBox)
	j.must(t, p, "solid.primitive", `{%s,"entity_id":"rod","primitive_type":"cylinder","radius":3,"height":100}`)
	p.mu.Lock()
	first := p.workers[0].proc.PID()
	p.mu.Unlock()
	expect.No(t, syscall.Kill(first, syscall.SIGKILL))
	expect.Await(t, "it is missed", func() bool { all, _ := p.Running(); return all == 0 })
	got := string(j.must(t, p, "measure.mass", `{%s,"entity_id":"ws_solid_1"}`))
	expect.Has(t, got, `"volume":6000`, "after the process was killed")
	j.must(t, p, "history.undo", `{%s}`)
	if _, err := j.do(t, p, "measure.mass", `{%s,"entity_id":"rod"}`); err == nil {
		t.Error("what was undone is still there")
	} else if fault := (*cad.Fault)(nil); !errors.As(err, &fault) || fault.Name != "ENTITY_NOT_FOUND" {
		t.Errorf("error %v", err)
	}
	again, err := model.Load(j.entries)
	expect.True(t, err == nil && again.Seq() == 4 && again.Len() == 1, "the journal: %v", err)
}

// What a worker that works reserves and holds, against its limits.
func TestTheLimitsLeaveRoomForWork(t *testing.T) {
	p := rig(t, "real")
	j := opened(t, p, "ws")
	j.must(t, p, "solid.primitive", someBox)
	for i := range 5 {
		j.must(t, p, "solid.primitive", fmt.Sprintf(`{%%s,"entity_id":"s%d","primitive_type":"sphere","radius":%d}`, i, i+1))
	}
	w := take(t, p, site("ws"))
	defer w.Release()
	held := w.(*lease).w.resident()
	t.Logf("a worker with %d solids holds %d MiB", 6, held>>20)
	expect.True(t, held != 0 && held <= p.opt.Resident, "it may hold %d MiB", p.opt.Resident>>20)
}

func BenchmarkOperation(b *testing.B) {
	for _, at := range []int{1, 10} {
		b.Run(fmt.Sprint(at), func(b *testing.B) {
			p := rig(b, "real", func(o *Options) { o.Max = 2 })
			var all []*journal
			for i := range at {
				all = append(all, opened(b, p, fmt.Sprintf("ws%d", i)))
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			var slowest time.Duration
			b.ResetTimer()
			for _, j := range all {
				wg.Go(func() {
					for i := range b.N/at + 1 {
						began := time.Now()
						if _, err := j.do(b, p, "entity.create_line", fmt.Sprintf(`{%%s,"start":[0,0],"end":[%d,1]}`, i)); err != nil {
							b.Error(err)
							return
						}
						took := time.Since(began)
						mu.Lock()
						slowest = max(slowest, took)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(slowest.Milliseconds()), "ms-max")
		})
	}
}
