package skill

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
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
	read, err := g.read(r.opt.Own)
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
	read, err := g.read(r.opt.Own)
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
		if len(d.problems) > 0 {
			continue
		}
		d.skill.TenantID = tenant
		d.refuse(r.checkRunner(&d.skill)...)
		d.skill.Digest = digest(&d.skill)
		if left[d] = len(d.problems) == 0 && unloaded[d.skill.Ref()] == d.skill.Digest; !left[d] && len(d.problems) == 0 {
			d.refuse(unique(p.before, d, held))
		}
		if !left[d] && len(d.problems) == 0 {
			held = append(held, d)
		}
	}
	next := p.before.with(skillsOf(held)...)
	for i := range read { // what is refused already needs to know of all that is wrong with it
		if d := &read[i].Definition; len(d.problems) > 0 {
			refuseUnknown(next, d, read)
		}
	}
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
		if old != nil && old.Digest == s.Digest {
			p.changes = append(p.changes, changeOf(record.Unchanged, old))
			continue
		}
		action := record.Created
		if old != nil {
			action = record.Changed
		}
		p.changes, p.add = append(p.changes, changeOf(action, &s)), append(p.add, &s)
	}
	document.Sort(p.refused)
	return p
}

func skillsOf(held []*Definition) []*Skill {
	return core.Map(held, func(d *Definition) *Skill { return &d.skill })
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
	runner := r.opt.Runners[spec.Kind]
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
	if err := runner.Check(spec); err != nil || r.opt.Env == nil {
		return []error{err}
	}
	return []error{r.opt.Env(s.TenantID, spec.Env)}
}

// unique refuses a version that is defined twice (model 3, Unique Name): in one
// load, or in another file than before while that is still there.
func unique(x *index, d *Definition, held []*Definition) error {
	s := &d.skill
	for _, other := range held {
		if other.skill.Ref() == s.Ref() {
			return taken(s, other.file)
		}
	}
	old := x.find(s.Ref())
	switch {
	case old == nil || old.Digest == s.Digest:
		return nil
	case old.Source == Builtin:
		return taken(s, "the program itself")
	case old.Source == "" || s.Source == "" || old.Source == s.Source:
		return nil
	}
	if _, err := os.Stat(old.Source); err == nil {
		return taken(s, old.Source)
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
				d.refuse(missing(next, e))
			}
		}
	}
}

// refuseUnknown refuses what a definition needs that is neither loaded nor among
// all that were read, whether those hold or not; of a field that is refused already
// it says no more.
func refuseUnknown(next *index, d *Definition, read []origin) {
	for _, e := range edges(&d.skill) {
		told := func(p document.Problem) bool {
			rest, below := strings.CutPrefix(e.field, p.Field)
			return below && (rest == "" || rest[0] == '[' || rest[0] == '.')
		}
		if e.ref != "" && next.find(e.ref) == nil && !slices.ContainsFunc(d.problems, told) && !slices.ContainsFunc(read, func(o origin) bool {
			s := &o.Definition.skill
			return s.Name == e.ref || s.Ref() == e.ref
		}) {
			d.refuse(missing(next, e))
		}
	}
}

func missing(next *index, e edge) error {
	err := core.Invalid(e.field, e.ref, "a skill that is loaded")
	name, _, _ := strings.Cut(e.ref, "@")
	if have := next.skills[name]; len(have) > 0 {
		err.Message += ", as " + have[0].Ref() + " is"
	}
	return err
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
	if len(p.add)+len(p.paths)+len(bad.news)+len(bad.mended) == 0 {
		return nil
	}
	err := r.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := bad.record(tx); err != nil {
			return err
		}
		for _, path := range p.paths {
			if err := r.kept.Save(tx, record.Event{Type: "skill.source.added"}, nil, &Source{Path: path}); err != nil {
				return err
			}
		}
		for _, s := range p.add {
			r.contracts.adopt(s)
			if err := r.load(tx, s); err != nil {
				return err
			}
		}
		if len(p.add) == 0 {
			return nil
		}
		return r.install(tx, p.before.with(p.add...))
	})
	if err != nil {
		return fmt.Errorf("load skills: %w", err)
	}
	return nil
}

// problemOf is an error that names its field, at that field's place.
func problemOf(root document.Value, err error) document.Problem {
	e := core.AsError(err)
	field, _ := e.Details["field"].(string)
	steps := strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) // runner.steps[0].params
	p := document.Problem{
		Line: root.Find(steps...).Line(), Field: cmp.Or(strings.Trim(root.Path()+"."+field, "."), "file"),
		Message: strings.TrimPrefix(e.Message, field+": "),
	}
	p.Value, _ = e.Details["value"].(string)
	p.Allowed, _ = e.Details["allowed"].(string)
	return p
}

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
		names := core.Map(users, func(u *Skill) string { return u.Ref() })
		return nil, core.Errorf(core.Conflict, "skill %s: it is needed by %s; unload that first", ref, core.ClipTo(strings.Join(names, ", "), 300)).
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
		return r.install(tx, next)
	})
	if err != nil {
		return nil, fmt.Errorf("unload skill %s: %w", ref, err)
	}
	return changes, nil
}
