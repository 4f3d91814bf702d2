package swarm_test

import (
	"os"
	"strconv"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (r *rig) retention() *retention.Service {
	r.T.Helper()
	s, err := retention.New(r.T.Context(), retention.Options{
		Ledger: r.Ledger, Tenants: r.DB.Tenants,
		Prune: map[string]retention.Prune{
			retention.Tasks: r.tasks.Prune, retention.Logs: r.tasks.PruneLogs, retention.Decisions: r.judge.PruneDecisions,
		},
	})
	expect.No(r.T, err)
	return s
}

func (r *rig) keeps(s *retention.Service, kind string, count int64) {
	r.T.Helper()
	_, _, err := s.Set(r.T.Context(), alice, retention.Policy{Kind: kind, Count: count})
	expect.No(r.T, err)
}

func (r *rig) size() int64 {
	r.T.Helper()
	info := expect.Of(os.Stat(r.Path))(r.T)
	return info.Size()
}

// TestAFileStopsGrowingUnderRetention runs task lives through a retention of a
// tenth of them: the file is at most 1.3 times that of so many, or 1.6 times
// where the space that is kept ahead makes much of it. RETENTION_TASKS is how
// many, 8,000 unless it is said, and 2,000 with -short.
func TestAFileStopsGrowingUnderRetention(t *testing.T) {
	total := 8_000
	if testing.Short() {
		total = 2_000
	}
	if s := os.Getenv("RETENTION_TASKS"); s != "" {
		total = expect.Of(strconv.Atoi(s))(t)
	}
	keep, most := total/10, 1.6
	if testing.Short() {
		most = 2 // the pages of a small file hardly fill
	}
	if keep >= 20_000 {
		most = 1.3
	}
	plain := newRig(t)
	enginetest.File(t, plain.DB)
	plain.live(keep, 64)
	var events, decisions int64
	expect.No(t, plain.Ledger.View(t.Context(), acme, func(tx *audit.Tx) error {
		events, decisions = tx.Counter("audit"), tx.Counter("decision")
		return nil
	}))
	want := plain.size()

	r := newRig(t)
	r.live(10, 1)
	saved, err := r.Ledger.Checkpoint(t.Context(), acme)
	if err == nil {
		err = r.Ledger.Issue(t.Context(), acme, saved)
	}
	expect.No(t, err)
	s := r.retention()
	r.keeps(s, retention.Tasks, int64(keep))
	r.keeps(s, retention.Decisions, decisions)
	r.keeps(s, retention.Audit, events)
	var rate float64
	for range 20 * total / keep { // rounds of a twentieth of what is kept, so that what may leave at once is bounded on any machine
		ended := expect.Later(func() error {
			_, err := s.Apply(t.Context(), acme)
			return err
		})
		rate, _ = r.live(keep/20, 64)
		expect.No(t, <-ended)
	}
	expect.Of(s.Apply(t.Context(), acme))(t)
	got := r.size()
	t.Logf("%d tasks through a retention of %d: %.1f MiB, %.2f times that of %d alone; %.0f lives/s", total, keep, float64(got)/(1<<20), float64(got)/float64(want), keep, rate)
	expect.True(t, float64(got) <= most*float64(want), "%d bytes, that of %d tasks is %d", got, keep, want)
	counts, err := r.tasks.Counts(t.Context(), acme)
	expect.True(t, err == nil && counts.Total == int64(keep) && counts.ByStatus[task.Succeeded] == int64(keep), "%v %v", counts, err)
	page, err := r.tasks.List(t.Context(), acme, core.Filter{Page: keep / 100, Size: 100})
	expect.True(t, err == nil && len(page.Items) == 100 && page.Info.Total == keep && !page.Info.Next, "%v %v %v", len(page.Items), page.Info, err)
	report, err := r.Ledger.Verify(t.Context(), acme, saved)
	expect.True(t, err == nil && report.OK && report.Sealed != 0, "%v %v", report, err)
	if d, err := r.Ledger.Reconcile(t.Context(), acme); err != nil || len(d) > 0 {
		t.Error(d[:min(len(d), 10)], err)
	}
	before, after, err := enginetest.File(t, r.DB).Compact(t.Context())
	expect.True(t, err == nil && after <= before, "%v %v %v", before, after, err)
	t.Logf("%.1f MiB once it is compacted", float64(after)/(1<<20))
}
