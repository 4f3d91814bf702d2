package skill

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
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
	return &index{skills, updated, sync.OnceValue(func() []*Skill { return slices.Concat(core.Sorted(skills)...) })}
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
	return slices.Compare(y[:], x[:])
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
		versions := core.Map(have, func(s *Skill) string { return s.Version })
		missing.Message += "; versions of it: " + core.ClipTo(strings.Join(versions, ", "), 200)
		return nil, missing.With("allowed", versions)
	}
	return nil, missing
}

// edge is one skill that another needs, and the field that says so.
type edge struct{ ref, field string }

// edges are all the skills that one needs: dependencies, steps, fallbacks.
func edges(s *Skill) []edge {
	all := make([]edge, 0, len(s.Dependencies)+2*len(s.Runner.Steps))
	for i, ref := range s.Dependencies {
		all = append(all, edge{ref, fmt.Sprintf("dependencies[%d]", i)})
	}
	for i, step := range s.Runner.Steps {
		field := fmt.Sprintf("runner.steps[%d]", i)
		all = append(all, edge{step.Skill, field + ".skill"})
		if step.Fallback != "" {
			all = append(all, edge{step.Fallback, field + ".fallback"})
		}
	}
	return all
}

// chain lists the dependencies of a skill, each after its own, and the skill
// itself last (model 3, resolve_dependencies).
func (x *index) chain(s *Skill) ([]*Skill, error) {
	var order []*Skill
	done := map[*Skill]bool{}
	var visit func(s *Skill, path []*Skill) error
	visit = func(s *Skill, path []*Skill) error {
		if done[s] {
			return nil
		}
		if at := slices.Index(path, s); at >= 0 {
			return core.Errorf(core.Conflict, "dependencies: a cycle: %s", x.pathText(append(path[at:], s)))
		}
		path = append(path, s)
		for _, ref := range s.Dependencies {
			dep := x.find(ref)
			if dep == nil {
				return core.Errorf(core.NotFound, "skill %s: its dependency %s is not loaded", s.Ref(), ref).With("field", "dependencies").With("value", ref)
			}
			if err := visit(dep, path); err != nil {
				return err
			}
		}
		done[s] = true
		order = append(order, s)
		return nil
	}
	if err := visit(s, nil); err != nil {
		return nil, err
	}
	return order, nil
}

// cycle is a way from a skill back to itself through whatever skills need,
// found by starting at each of some skills: the first one's text and fields,
// or nil. A skill in it stands once.
func (x *index) cycle(from []*Skill) []*Skill {
	const underWay, finished = 1, 2
	state := map[*Skill]int{}
	var path []*Skill
	var visit func(s *Skill) []*Skill
	visit = func(s *Skill) []*Skill {
		switch state[s] {
		case finished:
			return nil
		case underWay:
			return slices.Clone(path[slices.Index(path, s):])
		}
		state[s] = underWay
		path = append(path, s)
		for _, e := range edges(s) {
			if next := x.find(e.ref); next != nil {
				if found := visit(next); found != nil {
					return found
				}
			}
		}
		path = path[:len(path)-1]
		state[s] = finished
		return nil
	}
	for _, s := range from {
		if found := visit(s); found != nil {
			return found
		}
	}
	return nil
}

// pathText writes a way through skills: "a → b → a". Versions that a bare name
// does not stand for are told. The middle of a long way is left out.
func (x *index) pathText(path []*Skill) string {
	const head, tail = 16, 4
	var names []string
	for i, s := range path {
		switch {
		case len(path) > head+tail && i == head:
			names = append(names, fmt.Sprintf("… %d more …", len(path)-head-tail))
		case len(path) > head+tail && i > head && i < len(path)-tail:
		case x.newest(s):
			names = append(names, s.Name)
		default:
			names = append(names, s.Ref())
		}
	}
	return strings.Join(names, " → ")
}

// needing lists the skills that need one of those given and are not among
// them, as far as no other version would do in their place.
func (x *index) needing(gone []*Skill) []*Skill {
	next := x.without(gone)
	return core.Where(next.all(), func(s *Skill) bool {
		return slices.ContainsFunc(edges(s), func(e edge) bool { return next.find(e.ref) == nil && x.find(e.ref) != nil })
	})
}

var (
	namePattern    = core.Pattern(`^[A-Za-z0-9-]{3,50}$`)
	versionPattern = core.Pattern(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)
)

// What is allowed, as messages say it.
const (
	nameAllowed    = "3-50 of a-z A-Z 0-9 -"
	versionAllowed = "X.Y.Z, three numbers of at most 9 digits without leading zeros"
	refAllowed     = "a skill's name or name@X.Y.Z"
)

// version is a semantic version X.Y.Z (model 3); the zero value is none.
type version [3]uint32

func parseVersion(s string) (v version, ok bool) {
	m := versionPattern().FindStringSubmatch(s)
	if m == nil {
		return v, false
	}
	for i, digits := range m[1:] {
		n, _ := strconv.ParseUint(digits, 10, 32) // nine digits always fit
		v[i] = uint32(n)
	}
	return v, true
}

// refKey sorts the versions of a skill, name@version, as versions do.
func refKey(ref string) record.Key {
	name, ver, _ := strings.Cut(ref, "@")
	v, ok := parseVersion(ver)
	if !ok {
		return nil
	}
	return record.Text(name).Seq(uint64(v[0])).Seq(uint64(v[1])).Seq(uint64(v[2]))
}

// refOf is what refKey was given.
func refOf(key record.Parts) string {
	name := key.Text()
	return fmt.Sprintf("%s@%d.%d.%d", name, key.Seq(), key.Seq(), key.Seq())
}

// SplitRef reads "name" or "name@version", the latter "" when not given.
func SplitRef(ref string) (name, ver string, err error) {
	name, ver, exact := strings.Cut(ref, "@")
	if !namePattern().MatchString(name) {
		return "", "", core.Invalid("skill", ref, refAllowed+"; a name is "+nameAllowed)
	}
	if _, ok := parseVersion(ver); exact && !ok {
		return "", "", core.Invalid("skill", ref, refAllowed+"; a version is "+versionAllowed)
	}
	return name, ver, nil
}
