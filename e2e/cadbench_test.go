package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/drivers/cad/pool"
	"swarmdeck/drivers/cell"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// BenchmarkAssemblyDesign is the built-in scenario, from its start to the files
// that it exports, on each kernel: five agents, 60 operations, the queue, the
// judge, the store and the log. first-ms has the start of the workers in it.
func BenchmarkAssemblyDesign(b *testing.B) {
	for _, kernel := range []string{env.Embedded, env.OCCT} {
		b.Run(kernel, func(b *testing.B) {
			if kernel == env.OCCT {
				if _, err := freecad.Find(b.Context(), nil); err != nil {
					b.Skip(err)
				}
			}
			e := cadEngine(b)
			first := assemble(b, e, kernel)
			for b.Loop() {
				assemble(b, e, kernel)
			}
			b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
		})
	}
}

var bencher = core.Caller{Tenant: "t_bench", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// assemble runs the scenario once and tells how long that took.
func assemble(b *testing.B, e *engine.Engine, kernel string) time.Duration {
	b.Helper()
	began := time.Now()
	flow, err := e.CAD.RunScenario(b.Context(), bencher, cad.StartWorkflow{Scenario: "assembly_design", Kernel: kernel})
	expect.Await(b, "the end of the workflow", func() bool {
		if err == nil {
			flow, err = e.CAD.Progress(b.Context(), bencher.Tenant, flow.WorkflowID)
		}
		return err != nil || flow.State.Final()
	})
	if err != nil || flow.State != cad.WorkflowCompleted {
		b.Fatalf("%s %+v, %v", flow.Shown(), flow.Failures, err)
	}
	return time.Since(began)
}

// cadEngine is an engine whose CAD workers are processes of this program.
func cadEngine(b *testing.B) *engine.Engine {
	b.Helper()
	sup := expect.Of(cell.NewSupervisor(cell.Options{Instance: "swarmdeck-cad-bench-" + core.NewTrace(nil)[:8]}))(b)
	workers := pool.New(pool.Options{
		Supervisor: sup, Command: []string{os.Args[0], "cad", "env", "--journal"}, Env: map[string]string{"HOME": b.TempDir()},
		Kernels: []pool.Kernel{{Name: env.Embedded}, {Name: env.OCCT}},
	})
	path := filepath.Join(b.TempDir(), "bench.db")
	sealer := expect.Of(audit.OpenSealer(path + ".key"))(b)
	db := expect.Of(store.Open(path, store.Options{Seal: sealer.Seal}))(b)
	e := expect.Of(engine.Open(b.Context(), engine.Options{Store: db, Sealer: sealer, CADPool: workers, CADDir: filepath.Join(b.TempDir(), "files")}))(b)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := e.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		stop()
		all.Wait()
		if err := errors.Join(e.Close(), workers.Close(context.Background()), sup.Close(), db.Close()); err != nil {
			b.Error(err)
		}
	})
	expect.Of(e.Swarm.CreateTenant(b.Context(), bencher, bencher.Tenant))(b)
	return e
}
