package model

import "fmt"

// constraints lists those of both sides, and notes what they refer to.
func (m *merger) constraints() (ids []string) {
	for _, w := range []*Workspace{m.source, m.target} {
		for _, it := range w.order {
			if it.Type != Constraint {
				continue
			}
			ids = append(ids, it.ID)
			for _, id := range referred(it.Entity) {
				m.hung[id] = append(m.hung[id], it.ID)
			}
		}
	}
	return ids
}

// checkConstraint leaves out what would make a constraint hold something that
// it was not solved for.
func (m *merger) checkConstraint(id string) {
	k := m.result(id)
	if k == nil || k.Type != Constraint || m.solvedBy(m.source, k) == "" {
		return
	}
	with := m.solvedBy(m.target, k)
	if with == "" {
		return
	}
	if m.takes[id] {
		with = m.solvedBy(m.source, k)
		why := m.pair(id).about(BothModified)
		why.Description = fmt.Sprintf("%s refers to %s, which is not the same in %s", id, with, why.Target)
		if m.result(with) == nil {
			why.Type = DeletedModified
			why.Description = fmt.Sprintf("%s refers to %s, which %s does not have", id, with, why.Target)
		}
		why.WithID = with
		m.hold(id, why)
		return
	}
	for _, ref := range referred(k.Entity) {
		if !m.takes[ref] {
			continue
		}
		why := m.pair(ref).about(BothModified)
		why.Description = fmt.Sprintf("%s was changed in %s, but constraint %s of %s holds it", ref, why.Source, id, why.Target)
		if m.source.entities[ref] == nil {
			why.Type = DeletedModified
			why.Description = fmt.Sprintf("%s was deleted in %s, but constraint %s of %s holds it", ref, why.Source, id, why.Target)
		}
		why.WithID = id
		m.hold(ref, why)
	}
}

// solvedBy reports whether a workspace has a constraint with all that it holds
// as they will be: it answers "" or what is not so.
func (m *merger) solvedBy(w *Workspace, k *item) string {
	if hashOf(w.entities[k.ID]) != k.Hash {
		return k.ID
	}
	for _, id := range referred(k.Entity) {
		if now := m.result(id); now == nil || hashOf(w.entities[id]) != now.Hash {
			return id
		}
	}
	return ""
}
