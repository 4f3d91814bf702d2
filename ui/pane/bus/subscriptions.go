package bus

import (
	"context"
	"slices"
	"strconv"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// NewSubscriptions makes the pane of who reads what of the bus and how far
// behind, the furthest first, and of mailboxes with unread messages, as old as the
// oldest of them.
func NewSubscriptions(of Bus) *pane.Table[bus.SubscriptionInfo] {
	return pane.NewTable(pane.Spec[bus.SubscriptionInfo]{
		Name: "subscriptions", Title: "subscriptions", Empty: "nobody reads the bus",
		Face: face.For[bus.SubscriptionInfo](),
		Cells: map[string]pane.Cell[bus.SubscriptionInfo]{
			"READER": func(env *pane.Env, s *bus.SubscriptionInfo) (string, screen.Role) {
				if s.Open {
					return pane.State{State: screen.Working, Word: "reads"}.Cell(env)
				}
				return pane.State{State: screen.Offline, Word: "none"}.Cell(env)
			},
			"LAG": func(_ *pane.Env, s *bus.SubscriptionInfo) (string, screen.Role) {
				if s.Lag > 0 {
					return strconv.Itoa(s.Lag), screen.Warn
				}
				return "0", screen.Text
			},
			"MISSED": func(_ *pane.Env, s *bus.SubscriptionInfo) (string, screen.Role) {
				return pane.Some(s.Missed), screen.Bad
			},
		},
		ID: func(s *bus.SubscriptionInfo) string {
			return s.Name + " " + s.Pattern + " " + s.RecipientID + " " + s.By
		},
		Item: func(s *bus.SubscriptionInfo) pane.Item { return pane.Item{Kind: "subscription", ID: s.Name} },
		Load: func(ctx context.Context, tenant string) ([]bus.SubscriptionInfo, error) {
			return readSubscriptions(ctx, of, tenant)
		},
	})
}

func readSubscriptions(ctx context.Context, of Bus, tenant string) ([]bus.SubscriptionInfo, error) {
	all, err := of.Subscriptions(ctx, tenant)
	if err != nil {
		return nil, err
	}
	boxes, err := of.Mailboxes(ctx, tenant)
	for _, b := range boxes {
		if i := slices.IndexFunc(all, func(s bus.SubscriptionInfo) bool { return s.RecipientID == b.RecipientID }); i >= 0 {
			all[i].CreatedAt = b.Oldest
		} else {
			all = append(all, bus.SubscriptionInfo{RecipientID: b.RecipientID, Lag: b.Open, CreatedAt: b.Oldest})
		}
	}
	core.Sort(all, func(a, b bus.SubscriptionInfo) int { return b.Lag - a.Lag })
	return all, err
}
