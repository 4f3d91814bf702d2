package pool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

var alice = core.Caller{Tenant: "t_acme", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// engineOn is an engine whose CAD workers are processes of this program.
func engineOn(t testing.TB, p *Pool) *engine.Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	sealer := expect.Of(audit.OpenSealer(path + ".key"))(t)
	db := expect.Of(store.Open(path, store.Options{Seal: sealer.Seal}))(t)
	e := expect.Of(engine.Open(t.Context(), engine.Options{Store: db, Sealer: sealer, CADPool: p, CADDir: filepath.Join(t.TempDir(), "files")}))(t)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := e.Run(ctx)
		expect.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
		expect.Is(t, errors.Join(e.Close(), db.Close()), nil)
	})
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant))(t)
	return e
}

func agent(t testing.TB, e *engine.Engine, id, role string) {
	t.Helper()
	_, err := e.CAD.CreateAgent(t.Context(), alice, cad.CreateAgent{AgentID: id, RoleName: role, WorkspaceID: "ws_" + id, Workspace: &cad.CreateWorkspace{}})
	expect.No(t, err)
}

func execute(t testing.TB, e *engine.Engine, agent, method, params string) cad.Done {
	t.Helper()
	done, err := e.CAD.Execute(t.Context(), alice, cad.Operation{AgentID: agent, Method: method, Params: core.Raw(params)})
	expect.No(t, err, method, "by", agent)
	return done
}

// rectangle is a plate of an agent: four lines and what they enclose, raised.
func rectangle(t testing.TB, e *engine.Engine, agent string, x, width, height float64) cad.Done {
	t.Helper()
	corners := [][2]float64{{x, 0}, {x + width, 0}, {x + width, 20}, {x, 20}}
	var ids []string
	for i, c := range corners {
		next := corners[(i+1)%4]
		done := execute(t, e, agent, "entity.create_line", fmt.Sprintf(`{"start":[%g,%g],"end":[%g,%g]}`, c[0], c[1], next[0], next[1]))
		ids = append(ids, done.Entities...)
	}
	return execute(t, e, agent, "solid.extrude", fmt.Sprintf(`{"entity_ids":["%s"],"distance":%g}`, strings.Join(ids, `","`), height))
}

func TestTheEngineModelsAndMergesOnWorkers(t *testing.T) {
	p := rig(t, "real", func(o *Options) { o.Max = 2 })
	e := engineOn(t, p)
	agent(t, e, "ann", "modeler")
	agent(t, e, "ben", "modeler")
	agent(t, e, "ida", "integrator")
	var wg sync.WaitGroup
	for i, who := range []string{"ann", "ben"} {
		wg.Go(func() {
			done := rectangle(t, e, who, float64(50*i), 30, 10)
			expect.Has(t, string(done.Data), `"volume":6000`, who, "made", done.Data)
		})
	}
	wg.Wait()
	p.mu.Lock()
	for _, w := range p.workers { // all that is needed is in the store
		expect.No(t, syscall.Kill(w.proc.PID(), syscall.SIGKILL))
	}
	p.mu.Unlock()
	expect.Await(t, "they are gone", func() bool { all, _ := p.Running(); return all == 0 })
	for _, who := range []string{"ann", "ben"} {
		done, err := e.CAD.MergeInto(t.Context(), alice, "ws_"+who, "ws_ida")
		expect.Must(t, err == nil && strings.Contains(string(done.Data), `"merge_result":"success"`), "merge: %s, %v", done.Data, err)
	}
	done := execute(t, e, "ida", "measure.interference", `{}`)
	expect.Has(t, string(done.Data), `"interference_count":0`, done.Data)
	rectangle(t, e, "ben", 20, 20, 5)
	merged, err := e.CAD.MergeInto(t.Context(), alice, "ws_ben", "ws_ida")
	expect.True(t, err == nil && strings.Contains(string(merged.Data), "geometry_overlap"), "merge: %s, %v", merged.Data, err)
	open, err := e.CAD.Conflicts(t.Context(), alice.Tenant, "ws_ida")
	if err != nil || len(open) != 1 || open[0].EntityID != "ws_ben_solid_2" || open[0].WithID != "ws_ann_solid_1" || open[0].Volume < 999 || open[0].Volume > 1001 {
		t.Errorf("open %+v, %v", open, err)
	}
}

// BenchmarkEngine is a simple operation of agents who all work at once: role,
// gate, worker, store and audit.
func BenchmarkEngine(b *testing.B) {
	for _, agents := range []int{1, 10} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			e := engineOn(b, rig(b, "real", func(o *Options) { o.Max = 2 }))
			for i := range agents {
				agent(b, e, fmt.Sprintf("a%d", i), "designer")
				execute(b, e, fmt.Sprintf("a%d", i), "entity.create_point", `{"x":0,"y":0}`)
			}
			var wg sync.WaitGroup
			took := make([][]time.Duration, agents)
			b.ResetTimer()
			for i := range agents {
				wg.Go(func() {
					for n := range b.N/agents + 1 {
						began := time.Now()
						execute(b, e, fmt.Sprintf("a%d", i), "entity.create_point", fmt.Sprintf(`{"x":%d,"y":1}`, n))
						took[i] = append(took[i], time.Since(began))
					}
				})
			}
			wg.Wait()
			all := slices.Concat(took...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms-p99")
		})
	}
}
