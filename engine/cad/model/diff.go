package model

// Difference is one entity that two workspaces do not hold alike.
type Difference struct {
	EntityID string     `json:"entity_id"`
	Type     EntityType `json:"entity_type"`
	Change   string     `json:"change"` // added, removed or changed
	Before   *Entity    `json:"before,omitzero"`
	After    *Entity    `json:"after,omitzero"`
}

// Diff lists what makes b another than a: what was changed and removed, in a's
// order, then what was added, in b's.
func Diff(a, b *Workspace) (list []Difference) {
	for _, it := range a.order {
		other := b.entities[it.ID]
		switch before := it.Entity; {
		case other == nil:
			list = append(list, Difference{EntityID: it.ID, Type: it.Type, Change: "removed", Before: &before})
		case other.Hash != it.Hash:
			after := other.Entity
			list = append(list, Difference{EntityID: it.ID, Type: after.Type, Change: "changed", Before: &before, After: &after})
		}
	}
	for _, it := range b.order {
		if after := it.Entity; a.entities[it.ID] == nil {
			list = append(list, Difference{EntityID: it.ID, Type: after.Type, Change: "added", After: &after})
		}
	}
	return list
}
