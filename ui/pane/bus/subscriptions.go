package bus

import (
	"context"
	"strconv"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// reader is one row: a subscription, or a mailbox that nobody reads.
type reader struct {
	bus.SubscriptionInfo
	oldest time.Time // of a mailbox's unread messages
}

// NewSubscriptions makes the pane of who reads what of the bus and how far
// behind, the furthest first, and of mailboxes with unread messages.
func NewSubscriptions(of Bus) *pane.Table[reader] {
	return pane.NewTable(pane.Spec[reader]{
		Name: "subscriptions", Title: "subscriptions", Empty: "nobody reads the bus",
		Cols: []grid.Column{
			{Title: "READS", Min: 18, Weight: 2, Key: true},
			{Title: "NAME", Min: 12, Weight: 1, Priority: 2},
			{Title: "BY", Min: 10, Weight: 1, Priority: 3, Middle: true},
			{Title: "READER", Min: 10},
			{Title: "LAG", Min: 6, Right: true},
			{Title: "IN HAND", Min: 7, Priority: 4, Right: true},
			{Title: "MISSED", Min: 6, Priority: 1, Right: true},
			{Title: "OLDEST", Min: 6, Priority: 5, Right: true},
		},
		ID:   func(r *reader) string { return r.Name + " " + r.Pattern + " " + r.RecipientID + " " + r.By },
		Row:  readerRow,
		Item: func(r *reader) pane.Item { return pane.Item{Kind: "subscription", ID: r.Name} },
		Load: func(ctx context.Context, tenant string) ([]reader, error) { return readSubscriptions(ctx, of, tenant) },
	})
}

func readSubscriptions(ctx context.Context, of Bus, tenant string) ([]reader, error) {
	subs, err := of.Subscriptions(ctx, tenant)
	if err != nil {
		return nil, err
	}
	boxes, err := of.Mailboxes(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var all []reader
	for _, s := range subs {
		all = append(all, reader{SubscriptionInfo: s})
	}
	for _, b := range boxes {
		read := false
		for i := range all {
			if all[i].RecipientID == b.RecipientID {
				all[i].oldest, read = b.Oldest, true
			}
		}
		if !read {
			all = append(all, reader{bus.SubscriptionInfo{RecipientID: b.RecipientID, Lag: b.Open}, b.Oldest})
		}
	}
	core.Sort(all, func(a, b reader) int { return b.Lag - a.Lag })
	return all, nil
}

func readerRow(env *pane.Env, r *reader, set func(int, string, screen.Role)) {
	set(0, face.Address(r.Pattern, r.RecipientID), screen.Accent)
	set(1, r.Name, screen.Text)
	set(2, r.By, screen.Text)
	st := pane.State{State: screen.Offline, Word: "none"}
	if r.Open {
		st = pane.State{State: screen.Working, Word: "reads"}
	}
	set(3, st.Label(env.Glyphs), st.Role())
	role := screen.Text
	if r.Lag > 0 {
		role = screen.Warn
	}
	set(4, strconv.Itoa(r.Lag), role)
	set(5, pane.Some(r.Unacked), screen.Text)
	set(6, pane.Some(r.Missed), screen.Bad)
	set(7, pane.Age(env.Now, r.oldest), screen.Dim)
}
