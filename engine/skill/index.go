package skill

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/core"
)

// index is the skills of one tenant at one time. It is never changed: a change
// makes the next one.
type index struct {
	skills  map[string][]*Skill // by name, the newest version first
	updated time.Time
	all     func() []*Skill // by name, the newest version first; made when first asked for
}

func newIndex() *index { return indexOf(map[string][]*Skill{}, time.Time{}) }

func indexOf(skills map[string][]*Skill, updated time.Time) *index {
	x := &index{skills: skills, updated: updated}
	x.all = sync.OnceValue(x.sorted)
	return x
}

// find returns the skill that "name" or "name@version" stands for, nil when
// there is none. Without a version it is the newest.
func (x *index) find(ref string) *Skill {
	name, ver, exact := strings.Cut(ref, "@")
	all := x.skills[name]
	if !exact && len(all) > 0 {
		return all[0]
	}
	for _, s := range all {
		if s.Version == ver {
			return s
		}
	}
	return nil
}

// newest tells whether a skill is what its bare name stands for.
func (x *index) newest(s *Skill) bool {
	all := x.skills[s.Name]
	return len(all) > 0 && all[0].Version == s.Version
}

// with is the index with skills added, each in place of its own version.
func (x *index) with(added ...*Skill) *index {
	next := indexOf(maps.Clone(x.skills), x.updated)
	touched := map[string]bool{}
	for _, s := range added {
		all := slices.Clone(next.skills[s.Name])
		all = slices.DeleteFunc(all, func(o *Skill) bool { return o.Version == s.Version })
		next.skills[s.Name] = append(all, s)
		touched[s.Name] = true
		if s.UpdatedAt.After(next.updated) {
			next.updated = s.UpdatedAt
		}
	}
	for name := range touched {
		slices.SortFunc(next.skills[name], newerFirst)
	}
	return next
}

// without is the index with skills removed.
func (x *index) without(gone []*Skill) *index {
	next := indexOf(maps.Clone(x.skills), x.updated)
	for _, s := range gone {
		rest := slices.DeleteFunc(slices.Clone(next.skills[s.Name]), func(o *Skill) bool { return o.Version == s.Version })
		if next.skills[s.Name] = rest; len(rest) == 0 {
			delete(next.skills, s.Name)
		}
	}
	return next
}

func newerFirst(a, b *Skill) int {
	x, _ := parseVersion(a.Version)
	y, _ := parseVersion(b.Version)
	return y.compare(x)
}

func (x *index) sorted() []*Skill {
	var list []*Skill
	for _, name := range slices.Sorted(maps.Keys(x.skills)) {
		list = append(list, x.skills[name]...)
	}
	return list
}

// resolve is find with an error that says what there is.
func (x *index) resolve(ref string) (*Skill, error) {
	name, ver, err := SplitRef(ref)
	if err != nil {
		return nil, err
	}
	if s := x.find(ref); s != nil {
		return s, nil
	}
	missing := core.Missing("skill", ref)
	if have := x.skills[name]; ver != "" && len(have) > 0 {
		versions := make([]string, len(have))
		for i, s := range have {
			versions[i] = s.Version
		}
		missing.Message += "; versions of it: " + shorten(strings.Join(versions, ", "), 200)
		return nil, missing.With("allowed", versions)
	}
	return nil, missing
}
