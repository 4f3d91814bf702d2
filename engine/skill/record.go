package skill

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
)

// What the registry of a tenant keeps beside its skills and sources.
const (
	dropped record.Rows[string]    = "skill.dropped"  // like the skill's → digest of what was unloaded
	updated record.Rows[time.Time] = "skill.registry" // RegistryID → when it last changed
)

// Builtin is the source of the program's own skills.
const Builtin = "builtin"

// RegistryID is the one registry of a tenant (model 3, SkillRegistry).
const RegistryID = "default"

// Source is a file or directory that skills are read from again at start and
// when something in it changes.
type Source struct {
	TenantID string    `json:"tenant_id"`
	Path     string    `json:"path"` // absolute
	AddedAt  time.Time `json:"added_at"`
}

func (r *registry) sourceKind() record.Table[Source] {
	return &record.Kind[*Source]{
		Noun: "source", Subject: "skill.source", Bucket: "skill.source", Ledger: r.ledger, Follow: r.sources.Follow,
		ID:    func(s *Source) string { return s.Path },
		Head:  func(s *Source) record.Head { return record.Head{Tenant: &s.TenantID, Created: &s.AddedAt} },
		Whole: true,
	}
}

// stored is a skill as the store keeps it.
type stored struct {
	*Skill
	AuditSeq uint64 `json:"audit_seq"`
}

func (r *registry) skillKind() record.Table[Skill] {
	return &record.Kind[*Skill]{
		Noun: "skill", Bucket: "skill", Ledger: r.ledger, ID: (*Skill).Ref,
		Key:  func(_, ref string) record.Key { return refKey(ref) },
		Name: func(_ string, key []byte) string { return refOf(key) },
		Head: func(s *Skill) record.Head {
			return record.Head{Created: &s.CreatedAt, Updated: &s.UpdatedAt, Seq: &s.auditSeq}
		},
		Stored: func(s *Skill) any { return stored{s, s.auditSeq} },
		Decode: func(data []byte) (*Skill, error) {
			st := stored{Skill: new(Skill)}
			err := core.DecodeStored(data, &st)
			st.auditSeq = st.AuditSeq
			return st.Skill, err
		},
		Says: "digest source",
	}
}

// load writes a skill in place of the same version.
func (r *registry) load(tx *audit.Tx, s *Skill) error {
	event := "skill.loaded"
	old, err := r.skills.Load(tx, s.Ref())
	if err != nil {
		return err
	}
	if old != nil {
		event = "skill.changed"
	}
	return errors.Join(r.skills.Save(tx, record.Event{Type: event}, old, s), dropped.Drop(tx, refKey(s.Ref())))
}

// drop removes a skill, and remembers what it was so that its file does not
// bring it back.
func (r *registry) drop(tx *audit.Tx, s *Skill) error {
	old, err := r.skills.Need(tx, s.Ref())
	if err != nil {
		return err
	}
	return errors.Join(r.skills.Remove(tx, record.Event{Type: "skill.unloaded"}, old), dropped.Put(tx, refKey(s.Ref()), s.Digest))
}

// install makes an index the tenant's with the commit, and notes when.
func (r *registry) install(tx *audit.Tx, x *index) error {
	tenant := tx.Tenant()
	x.updated = tx.Now()
	tx.OnCommit(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.shelves[tenant] = x
	})
	return updated.Put(tx, record.Key(RegistryID), x.updated)
}

// read reads a tenant's skills, what was refused, and the sources.
func (r *registry) read(ctx context.Context, tenant string) error {
	return errors.Join(r.kept.Read(ctx, tenant), r.refused.Read(ctx, tenant), r.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		x := newIndex()
		unread := r.skills.Each(tx, func(s *Skill) error {
			r.contracts.adopt(s)
			x.skills[s.Name] = append([]*Skill{s}, x.skills[s.Name]...) // keys sort by version, the oldest first
			return nil
		})
		x = x.with(r.own(tenant)...)
		at, known, err := updated.Get(tx, record.Key(RegistryID))
		if known {
			x.updated = at
		}
		r.shelves[tenant] = x
		return errors.Join(unread, err)
	}))
}

// refusal is a file below a source that was refused when it was last read.
type refusal struct {
	File     string             `json:"file"`
	Problems []document.Problem `json:"problems"`
}

func (r *registry) refusalKind() record.Table[refusal] {
	return &record.Kind[*refusal]{
		Noun: "refused file", Subject: "skill.file", Bucket: "skill.refused", Quiet: true, Ledger: r.ledger, Follow: r.bad.Follow,
		ID:  func(b *refusal) string { return b.File },
		Key: func(_, file string) record.Key { return record.Hash(file) }, // paths may be longer than keys
	}
}

// refusals are what a load found of files that it refused, and of files that
// were refused before.
type refusals struct {
	r      *registry
	tenant string
	byFile map[string][]document.Problem
	news   []string // files whose refusal is to be audited
	kept   []string // those of them below a source: they are read again
	mended []string // refused before, and now taken or gone
}

// refusals of a plan. A file that is refused for the same reasons as the last
// time is not audited again unless someone asked.
func (r *registry) refusals(by core.Caller, p *plan) *refusals {
	b := &refusals{r: r, tenant: by.Tenant, byFile: map[string][]document.Problem{}}
	for _, problem := range p.refused {
		b.byFile[problem.File] = append(b.byFile[problem.File], problem)
	}
	sources := r.Sources(by.Tenant)
	for _, path := range p.paths {
		sources = append(sources, Source{Path: path})
	}
	known := r.bad.Of(by.Tenant)
	for _, file := range slices.Sorted(maps.Keys(b.byFile)) {
		same := known[file] != nil && slices.Equal(known[file].Problems, b.byFile[file])
		if !same || by.Kind != core.Engine {
			b.news = append(b.news, file)
		}
		if !same && covered(sources, file) {
			b.kept = append(b.kept, file)
		}
	}
	for _, file := range append(p.files, p.gone...) {
		if known[file] != nil && b.byFile[file] == nil && !slices.Contains(b.mended, file) {
			b.mended = append(b.mended, file)
		}
	}
	return b
}

// record audits what has changed, and keeps it.
func (b *refusals) record(tx *audit.Tx) error {
	of := b.r.bad.Of(b.tenant)
	for _, file := range b.news {
		now := &refusal{file, b.byFile[file]}
		event := record.Event{Type: "skill.refused", Detail: map[string]any{"problems": now.Problems}}
		if slices.Contains(b.kept, file) {
			if err := b.r.refused.Save(tx, event, of[file], now); err != nil {
				return err
			}
		} else if _, err := tx.Record(audit.Entry{Type: event.Type, Subject: "skill.file", ID: file, Detail: event.Detail}); err != nil {
			return err
		}
	}
	for _, file := range b.mended {
		if err := b.r.refused.Remove(tx, record.Event{Type: "skill.mended"}, of[file]); err != nil {
			return err
		}
	}
	return nil
}

// Problems are what is wrong with the files below a tenant's sources that were
// refused when they were last read.
func (r *registry) Problems(tenant string) (all []document.Problem) {
	for _, file := range core.Sorted(r.bad.Of(tenant)) {
		all = append(all, file.Problems...)
	}
	return all
}

// refusedGone are the refused files that are no more.
func (r *registry) refusedGone(tenant string) []string {
	files := slices.Collect(maps.Keys(r.bad.Of(tenant)))
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
