package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// asks are a tenant's open approvals. They are read once; then each commit
// brings what it changed, so that a look costs no reading. Guarded by world.mu.
type asks struct {
	open map[string]*judge.Approval // nil before they are read
	late map[string]*judge.Approval // changed while they are read; nil when they are not
}

// changed takes an approval as a commit left it.
func (a *asks) changed(c core.Change) {
	ask, _ := c.Record.(*judge.Approval)
	if a.late != nil {
		a.late[c.ID] = ask
	}
	a.keep(c.ID, ask)
}

func (a *asks) keep(id string, ask *judge.Approval) {
	switch {
	case a.open == nil:
	case ask == nil || ask.Status != judge.Open:
		delete(a.open, id)
	default:
		a.open[id] = ask
	}
}

// approvals lists a tenant's open approvals in order. last is the former list:
// most of it is as it was, in its order.
func (w *world) approvals(ctx context.Context, tenant string, last []*judge.Approval) ([]*judge.Approval, error) {
	next, err := w.asked(ctx, tenant, last)
	slices.SortFunc(next, moreUrgent)
	return next, err
}

// asked is that without an order.
func (w *world) asked(ctx context.Context, tenant string, last []*judge.Approval) ([]*judge.Approval, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &w.tenant(tenant).asks
	if a.open == nil {
		if err := w.read(ctx, tenant, a); err != nil {
			return nil, err
		}
	}
	next := make([]*judge.Approval, 0, len(a.open))
	for _, was := range last {
		if ask := a.open[was.ApprovalID]; ask != nil {
			next = append(next, ask)
		}
	}
	if len(next) == len(a.open) {
		return next, nil
	}
	known := make(map[string]bool, len(next))
	for _, ask := range next {
		known[ask.ApprovalID] = true
	}
	for id, ask := range a.open {
		if !known[id] {
			next = append(next, ask)
		}
	}
	return next, nil
}

// read reads the open approvals of a tenant. The caller holds w.mu, which is
// free meanwhile, for the commits; another reader waits for the tenant's.
func (w *world) read(ctx context.Context, tenant string, a *asks) error {
	a.late = map[string]*judge.Approval{}
	w.mu.Unlock()
	open, err := w.e.Judge.Open(ctx, tenant)
	w.mu.Lock()
	late := a.late
	a.late = nil
	if err != nil {
		return err
	}
	a.open = make(map[string]*judge.Approval, len(open))
	for i := range open {
		a.open[open[i].ApprovalID] = &open[i]
	}
	for id, ask := range late {
		a.keep(id, ask)
	}
	return nil
}

// moreUrgent orders approvals: those put off last, then by risk, then by the
// time that is left.
func moreUrgent(a, b *judge.Approval) int {
	endsA, _ := a.Ends()
	endsB, _ := b.Ends()
	return cmp.Or(
		cmp.Compare(later(a), later(b)),
		-cmp.Compare(riskRank(a.Risk), riskRank(b.Risk)),
		endsA.Compare(endsB),
		strings.Compare(a.ApprovalID, b.ApprovalID),
	)
}

func later(a *judge.Approval) int {
	if a.DeferredUntil.IsZero() {
		return 0
	}
	return 1
}

func riskRank(r judge.Risk) int {
	return slices.Index([]judge.Risk{judge.Low, judge.Medium, judge.High, judge.Critical}, r)
}
