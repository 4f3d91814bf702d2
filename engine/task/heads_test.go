package task_test

import (
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestAHeaderIsWhatTheLastTransactionOfACommitLeft has two transactions of one
// commit move a task: what is remembered of it must be of the second.
func TestAHeaderIsWhatTheLastTransactionOfACommitLeft(t *testing.T) {
	var table *task.Table
	w := enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) { table = task.New(task.Options{Ledger: w.Ledger}) }})
	by := enginetest.Alice()
	for range 20 { // the two come in either order
		one := task.Task{TenantID: by.Tenant, TraceID: core.NewTrace(nil), Kind: "test.run", Status: task.Queued, Input: core.Raw(`{}`)}
		w.No(w.Ledger.Update(t.Context(), by, func(tx *audit.Tx) error {
			w.No(table.Add(tx, &one))
			return table.Move(tx, &one, "", "task.queued", nil)
		}))
		move := func(to task.Status) {
			w.No(w.Ledger.Update(t.Context(), by, func(tx *audit.Tx) error {
				var now task.Task
				if err := table.Load(tx, one.Seq(), &now); err != nil {
					return err
				}
				from := now.Status
				if now.Priority++; !from.Terminal() {
					now.Status = to
					if to.Terminal() {
						now.CompletedAt = tx.Now()
					}
				}
				return table.Move(tx, &now, from, "task.moved", nil)
			}))
		}
		var wg sync.WaitGroup
		w.No(w.Ledger.Update(t.Context(), by, func(*audit.Tx) error { // the others join its commit
			wg.Go(func() { move(task.Queued) })
			wg.Go(func() { move(task.Cancelled) })
			return nil
		}))
		wg.Wait()
		var now task.Task
		w.No(w.Ledger.Update(t.Context(), by, func(tx *audit.Tx) error { return table.Load(tx, one.Seq(), &now) }))
		expect.Must(t, now.Status == task.Cancelled && now.Priority == 2, "in mind it is %s after %d moves, want cancelled after 2", now.Status, now.Priority)
	}
	w.Proven(by.Tenant)
}
