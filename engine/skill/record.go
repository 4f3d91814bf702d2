package skill

import (
	"context"
	"errors"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// What the registry of a tenant keeps beside its skills and sources.
const (
	dropped record.Rows[string]    = "skill.dropped"  // like the skill's → digest of what was unloaded
	updated record.Rows[time.Time] = "skill.registry" // RegistryID → when it last changed
)

// Builtin is the source of the program's own skills.
const Builtin = "builtin"

// RegistryID is the one registry of a tenant (seed 3, SkillRegistry).
const RegistryID = "default"

// Source is a file or directory that skills are read from again at start and
// when something in it changes.
type Source struct {
	TenantID string    `json:"tenant_id"`
	Path     string    `json:"path"` // absolute
	AddedAt  time.Time `json:"added_at"`
}

func (r *registry) sourceKind() record.Kind[Source] {
	return record.Kind[Source]{
		Noun: "source", Subject: "skill.source", Bucket: "skill.source", Ledger: r.ledger, Follow: r.sources.Follow,
		ID:    func(s *Source) string { return s.Path },
		Head:  func(s *Source) record.Head { return record.Head{Tenant: &s.TenantID, Created: &s.AddedAt} },
		State: func(s *Source) any { return s },
	}
}

// stored is a skill as the store keeps it.
type stored struct {
	*Skill
	AuditSeq uint64 `json:"audit_seq"`
}

func (r *registry) skillKind() record.Kind[Skill] {
	return record.Kind[Skill]{
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
		State: func(s *Skill) any {
			return struct {
				Digest string `json:"digest"`
				Source string `json:"source,omitempty"`
			}{s.Digest, s.Source}
		},
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

// touch notes when the registry changed.
func touch(tx *audit.Tx) error { return updated.Put(tx, record.Key(RegistryID), tx.Now()) }

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

// readDropped lists the digests of what was unloaded, by name@version.
func readDropped(tx store.Tx, into map[string]string) error {
	return dropped.Each(tx, nil, func(key record.Parts, digest string) (bool, error) {
		into[refOf(key)] = digest
		return true, nil
	})
}
