package swarm_test

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestResultsAreListedAsTheyCame(t *testing.T) {
	r := newRig(t)
	var ids []string
	for range 3 {
		ids = append(ids, r.dispatch(`{}`).TaskID)
	}
	claimed := map[string]task.Task{}
	for range ids {
		tk := r.claim()
		claimed[tk.TaskID] = tk
	}
	order := []int{1, 2, 0}
	for _, i := range order {
		r.complete(claimed[ids[i]], ok(`{}`))
	}
	for page := range 3 {
		got, err := r.tasks.Results(t.Context(), acme, core.Filter{Page: page + 1, Size: 1})
		expect.True(t, err == nil && got.Info.Total == 3 && len(got.Items) == 1 && got.Items[0].TaskID == ids[order[2-page]],
			"page %d: %+v %v", page+1, got, err)
	}
}
