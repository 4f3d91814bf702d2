package task_test

import (
	"fmt"
	"slices"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestAListBeginsWithTheTasksThatNeedSomebody reads it page by page: each task is there
// once, and the rest stands as it stood.
func TestAListBeginsWithTheTasksThatNeedSomebody(t *testing.T) {
	var table *task.Table
	w := enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) { table = task.New(task.Options{Ledger: w.Ledger}) }})
	by := enginetest.Alice()
	add := func(status task.Status) (id string) {
		w.No(w.Ledger.Update(t.Context(), by, func(tx *audit.Tx) error {
			one := task.Task{TenantID: by.Tenant, TraceID: core.NewTrace(nil), Kind: "test.run", Status: task.Queued, Input: core.Raw(`{}`)}
			w.No(table.Add(tx, &one))
			w.No(table.Move(tx, &one, "", "task.queued", nil))
			id = one.TaskID
			if one.Status = status; status.Terminal() {
				one.CompletedAt = tx.Now()
			} else if status == task.Running {
				one.Lease = 1
			}
			if status != task.Queued {
				return table.Move(tx, &one, task.Queued, "task.moved", nil)
			}
			return nil
		}))
		return id
	}
	var ids []string
	for i := range 60 {
		ids = append(ids, add([]task.Status{task.Succeeded, task.Cancelled, task.Failed, task.Running, task.Succeeded, task.Blocked}[i%6]))
	}
	ids = append(ids, add(task.Queued), add(task.Running))
	head := expect.Of(table.Urgent(t.Context(), by.Tenant, []string{ids[3], ids[9]}))(t)
	read := func(f core.Filter) (all []string) {
		for f.Page = 1; ; f.Page++ {
			page := expect.Of(table.ListFrom(t.Context(), by.Tenant, head, f))(t)
			for _, one := range page.Items {
				all = append(all, fmt.Sprint(one.Seq(), " ", one.Status))
			}
			if !page.Info.Next {
				expect.Is(t, page.Info.Total, len(ids), "total")
				return all
			}
		}
	}
	add(task.Succeeded) // after the order was made
	ids = append(ids, "")
	var got []string
	for _, size := range []int{1, 7, 33, 100} {
		all := read(core.Filter{Size: size})
		expect.Must(t, got == nil || slices.Equal(all, got), "pages of %d have %v, want %v", size, all, got)
		got = all
	}
	expect.Same(t, got[:5], []string{"4 running", "10 running", "60 blocked", "57 failed", "54 blocked"})
	expect.Same(t, got[22:24], []string{"62 running", "58 running"})
	expect.Same(t, got[31:34], []string{"61 queued", "63 succeeded", "59 succeeded"})
	for _, match := range []string{"failed", "blocked"} { // words find what lists show
		page := expect.Of(table.List(t.Context(), by.Tenant, core.Filter{Match: match}))(t)
		expect.Is(t, page.Info.Total, 10, match)
	}
	slices.Sort(got)
	expect.Is(t, len(slices.Compact(got)), len(ids), "different tasks")
}
