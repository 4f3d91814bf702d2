package skill

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

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
// itself last (seed 3, resolve_dependencies).
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
	var all []*Skill
	for _, s := range next.all() {
		if slices.ContainsFunc(edges(s), func(e edge) bool { return next.find(e.ref) == nil && x.find(e.ref) != nil }) {
			all = append(all, s)
		}
	}
	return all
}
