package skill

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// Change says what a load or an unload did to one skill.
type Change struct {
	Action  string `json:"action"` // created, changed, unchanged, unloaded
	Object  string `json:"object"` // skill
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Source  string `json:"source,omitempty"`
}

func changeOf(action string, s *Skill) Change {
	return Change{action, "skill", s.Name, s.Version, s.Digest, s.Source}
}

// Loaded is what came of a load: a file is taken whole or refused whole, with
// every problem; what was loaded of a refused file before stays.
type Loaded struct {
	Changes []Change
	Refused []document.Problem
}

// Load takes skills in and remembers their paths: they are read again when
// the engine starts and when something in them changes.
func (r *registry) Load(ctx context.Context, by core.Caller, g Given) (Loaded, error) {
	read, err := g.read(r.engines)
	if err != nil {
		return Loaded{}, err
	}
	release, err := r.write(ctx)
	if err != nil {
		return Loaded{}, err
	}
	defer release()
	p := r.plan(by.Tenant, read, nil)
	p.paths = r.newSources(by.Tenant, p, read)
	if len(r.Sources(by.Tenant))+len(p.paths) > maxSources {
		return Loaded{}, core.Errorf(core.Conflict, "path: skills are read from %d files and directories already; load a directory instead of its files", maxSources).With("field", "path")
	}
	return Loaded{p.changes, p.refused}, r.carryOut(ctx, by, p)
}

// Check lists what Load would refuse, and changes nothing.
func (r *registry) Check(tenant string, g Given) ([]document.Problem, error) {
	read, err := g.read(r.engines)
	if err != nil {
		return nil, err
	}
	return r.plan(tenant, read, nil).refused, nil
}

// plan is a load thought through before anything is written.
type plan struct {
	before  *index
	add     []*Skill // new or changed
	changes []Change
	refused []document.Problem
	files   []string // that were read
	gone    []string // refused before, and no more there
	paths   []string // new sources
}

// plan settles which of the definitions hold beside what the tenant has: each
// runner can run, names and versions are unique, all that is needed is there,
// and nothing needs itself. What is refused may be needed by others, so it
// goes on until the rest holds. What is as it was when it was unloaded (its
// digest by name@version) is left out.
func (r *registry) plan(tenant string, read []origin, unloaded map[string]string) *plan {
	p := &plan{before: r.index(tenant)}
	var held []*Definition
	left := map[*Definition]bool{}
	for i := range read {
		d := &read[i].Definition
		p.files = append(p.files, d.file)
		if len(d.problems) == 0 {
			d.skill.TenantID = tenant
			d.refuse(r.checkRunner(&d.skill)...)
			d.skill.Digest = digest(&d.skill)
			left[d] = len(d.problems) == 0 && unloaded[d.skill.Ref()] == d.skill.Digest
		}
		if len(d.problems) == 0 && !left[d] {
			d.refuse(unique(p.before, d, held)...)
		}
		if len(d.problems) == 0 && !left[d] {
			held = append(held, d)
		}
	}
	next := p.before.with(skillsOf(held)...)
	for {
		refuseMissing(next, held)
		if !refused(held) {
			refuseCycle(next, held)
		}
		if !refused(held) {
			break
		}
		held = slices.DeleteFunc(held, func(d *Definition) bool { return len(d.problems) > 0 })
		next = p.before.with(skillsOf(held)...)
	}
	for i := range read {
		d := &read[i].Definition
		if len(d.problems) > 0 {
			p.refused = append(p.refused, d.problems...)
			continue
		}
		if left[d] {
			continue
		}
		s := d.skill // a copy, so that the file's tree is not kept with it
		old := p.before.find(s.Ref())
		switch {
		case old == nil:
			p.changes = append(p.changes, changeOf("created", &s))
			p.add = append(p.add, &s)
		case old.Digest != s.Digest:
			p.changes = append(p.changes, changeOf("changed", &s))
			p.add = append(p.add, &s)
		default:
			p.changes = append(p.changes, changeOf("unchanged", old))
		}
	}
	document.Sort(p.refused)
	return p
}

func skillsOf(held []*Definition) []*Skill {
	all := make([]*Skill, len(held))
	for i, d := range held {
		all[i] = &d.skill
	}
	return all
}

func refused(held []*Definition) bool {
	return slices.ContainsFunc(held, func(d *Definition) bool { return len(d.problems) > 0 })
}

// refuse adds errors that name their field as problems of the definition.
func (d *Definition) refuse(errs ...error) {
	for _, err := range errs {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			d.refuse(many.Unwrap()...)
		} else if err != nil {
			p := problemOf(d.root, err)
			p.File = d.file
			d.problems = append(d.problems, p)
		}
	}
}

// checkRunner asks the runner whether it could run the skill, and what that
// would do besides what is declared.
func (r *registry) checkRunner(s *Skill) []error {
	spec := s.Runner
	if spec.Kind == composite {
		return nil
	}
	runner := r.runners[spec.Kind]
	if runner == nil {
		allowed := strings.Join(r.Kinds(), ", ")
		if spec.Kind == "mcp" || spec.Kind == "cad" {
			allowed += "; " + spec.Kind + " skills need a driver that is not here"
		}
		return []error{core.Invalid("runner.kind", spec.Kind, allowed)}
	}
	if e, ok := runner.(Effecter); ok {
		for _, effect := range e.Effects(spec) {
			if !slices.Contains(s.Effects, effect) {
				s.Effects = append(slices.Clip(s.Effects), effect)
			}
		}
	}
	if err := runner.Check(spec); err != nil || r.env == nil {
		return []error{err}
	}
	return []error{r.env(s.TenantID, spec.Env)}
}

// unique refuses a version that is defined twice (seed 3, Unique Name): in one
// load, or in another file than before while that is still there.
func unique(x *index, d *Definition, held []*Definition) []error {
	s := &d.skill
	for _, other := range held {
		if other.skill.Ref() == s.Ref() {
			return []error{taken(s, other.file)}
		}
	}
	old := x.find(s.Ref())
	switch {
	case old == nil || old.Digest == s.Digest:
		return nil
	case old.Source == Builtin:
		return []error{taken(s, "the program itself")}
	case old.Source == "" || s.Source == "" || old.Source == s.Source:
		return nil
	}
	if _, err := os.Stat(old.Source); err == nil {
		return []error{taken(s, old.Source)}
	}
	return nil
}

func taken(s *Skill, where string) error {
	return core.Errorf(core.Conflict, "name: %q is not allowed; allowed: one definition of each version, and %s is defined by %s", s.Name, s.Ref(), where).
		With("field", "name").With("value", s.Name).With("allowed", "one definition of each version")
}

func refuseMissing(next *index, held []*Definition) {
	for _, d := range held {
		for _, e := range edges(&d.skill) {
			if next.find(e.ref) == nil {
				err := core.Invalid(e.field, e.ref, "a skill that is loaded")
				name, _, _ := strings.Cut(e.ref, "@")
				if have := next.skills[name]; len(have) > 0 {
					err.Message += ", as " + have[0].Ref() + " is"
				}
				d.refuse(err)
			}
		}
	}
}

// refuseCycle refuses every new definition that is part of a cycle.
func refuseCycle(next *index, held []*Definition) {
	path := next.cycle(skillsOf(held))
	for i, s := range path {
		at := slices.IndexFunc(held, func(d *Definition) bool { return &d.skill == s })
		if at < 0 {
			continue
		}
		from := slices.Concat(path[i:], path[:i], path[i:i+1])
		for _, e := range edges(s) {
			if next.find(e.ref) == from[1] {
				held[at].refuse(core.Errorf(core.InvalidInput, "%s: %q is not allowed; allowed: what does not need this skill itself; a cycle: %s", e.field, e.ref, next.pathText(from)).
					With("field", e.field).With("value", e.ref).With("allowed", "what does not need this skill itself"))
				break
			}
		}
	}
}

// carryOut writes a plan, in one transaction.
func (r *registry) carryOut(ctx context.Context, by core.Caller, p *plan) error {
	bad := r.refusals(by, p)
	if len(p.add)+len(p.paths) == 0 && !bad.any() {
		return nil
	}
	err := r.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := bad.record(tx); err != nil {
			return err
		}
		if err := r.addSources(tx, p.paths); err != nil {
			return err
		}
		return r.addSkills(tx, p)
	})
	if err != nil {
		return fmt.Errorf("load skills: %w", err)
	}
	return nil
}

func (r *registry) addSkills(tx *audit.Tx, p *plan) error {
	if len(p.add) == 0 {
		return nil
	}
	for _, s := range p.add {
		r.contracts.adopt(s)
		if err := r.load(tx, s); err != nil {
			return err
		}
	}
	tenant, next := tx.Tenant(), p.before.with(p.add...)
	next.updated = tx.Now()
	tx.OnCommit(func() { r.install(tenant, next) })
	return touch(tx)
}
