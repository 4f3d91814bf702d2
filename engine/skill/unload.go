package skill

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Unload removes a version of a skill, or all of them when ref names none.
// What others need stays. The files are not touched, and are not loaded again
// before they change or a load names them. Runs that are under way go on.
func (r *registry) Unload(ctx context.Context, by core.Caller, ref string) ([]Change, error) {
	release, err := r.write(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	x := r.index(by.Tenant)
	s, err := x.resolve(ref)
	if err != nil {
		return nil, err
	}
	gone := []*Skill{s}
	if !strings.Contains(ref, "@") {
		gone = slices.Clone(x.skills[s.Name])
	}
	gone = slices.DeleteFunc(gone, func(s *Skill) bool { return s.Source == Builtin })
	if len(gone) == 0 {
		return nil, core.Errorf(core.Conflict, "skill %s: it is part of the program and can't be unloaded", ref).With("field", "skill").With("value", ref)
	}
	if users := x.needing(gone); len(users) > 0 {
		names := make([]string, len(users))
		for i, u := range users {
			names[i] = u.Ref()
		}
		return nil, core.Errorf(core.Conflict, "skill %s: it is needed by %s; unload that first", ref, shorten(strings.Join(names, ", "), 300)).
			With("field", "skill").With("value", ref).With("needed_by", names)
	}
	next := x.without(gone)
	if path := next.cycle(next.skills[s.Name]); path != nil {
		return nil, core.Errorf(core.Conflict, "skill %s: without it %s would stand for an older version, in a cycle: %s", ref, s.Name, next.pathText(append(path, path[0]))).
			With("field", "skill").With("value", ref)
	}
	changes := make([]Change, len(gone))
	err = r.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		for i, s := range gone {
			changes[i] = changeOf("unloaded", s)
			if err := r.drop(tx, s); err != nil {
				return err
			}
		}
		next.updated = tx.Now()
		tx.OnCommit(func() { r.install(by.Tenant, next) })
		return touch(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("unload skill %s: %w", ref, err)
	}
	return changes, nil
}
