package skill

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of the registry in a tenant.
const (
	bSkill    store.Bucket = "skill"          // name, 0, version → stored
	bSource   store.Bucket = "skill.source"   // absolute path → Source
	bDropped  store.Bucket = "skill.dropped"  // name, 0, version → digest of what was unloaded
	bRefused  store.Bucket = "skill.refused"  // hash of a path → the file's problems
	bRegistry store.Bucket = "skill.registry" // "default" → when it last changed
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

// stored is a skill as the store keeps it.
type stored struct {
	*Skill
	AuditSeq uint64 `json:"audit_seq"`
}

// auditState is what the audit log says about a skill.
type auditState struct {
	Digest string `json:"digest"`
	Source string `json:"source,omitempty"`
}

func stateOf(s *Skill) auditState { return auditState{s.Digest, s.Source} }

func skillKey(s *Skill) []byte {
	v, _ := parseVersion(s.Version)
	return append(append([]byte(s.Name), 0), v.key()...)
}

func loadStored(tx store.Tx, key []byte) (stored, error) {
	data, err := tx.Get(bSkill, key)
	if err != nil || data == nil {
		return stored{}, err
	}
	return decodeStored(data)
}

func decodeStored(data []byte) (stored, error) {
	st := stored{Skill: new(Skill)}
	if err := core.DecodeStored(data, &st); err != nil {
		return stored{}, fmt.Errorf("decode a skill: %w", err)
	}
	return st, nil
}

func eachSkill(tx store.Tx, each func(*Skill) error) error {
	var bad []error
	var stop error
	err := tx.Scan(bSkill, nil, nil, false, func(key, value []byte) bool {
		st, err := decodeStored(value)
		if err != nil {
			bad = append(bad, &core.Damaged{Noun: "skill", Key: string(key), Err: err})
			return true
		}
		stop = each(st.Skill)
		return stop == nil
	})
	return errors.Join(append(bad, err, stop)...)
}

// put writes a skill with its audit event and change record.
func put(tx *audit.Tx, s *Skill, event string) error {
	key := skillKey(s)
	before, err := loadStored(tx, key)
	if err != nil {
		return fmt.Errorf("read skill %s: %w", s.Ref(), err)
	}
	st := stored{Skill: s}
	st.AuditSeq, err = tx.Record(audit.Entry{Type: event, Subject: "skill", ID: s.Ref(), State: stateOf(s), Prev: before.AuditSeq})
	if err != nil {
		return err
	}
	data, err := core.Encode(st)
	if err != nil {
		return fmt.Errorf("encode skill %s: %w", s.Ref(), err)
	}
	if err := tx.Put(bSkill, key, data); err != nil {
		return err
	}
	tx.Changed("skill", s.Ref(), s)
	return tx.Delete(bDropped, key)
}

// drop removes a skill, and remembers what it was so that its file does not
// bring it back.
func drop(tx *audit.Tx, s *Skill) error {
	key := skillKey(s)
	before, err := loadStored(tx, key)
	if err != nil {
		return fmt.Errorf("read skill %s: %w", s.Ref(), err)
	}
	if _, err := tx.Record(audit.Entry{Type: "skill.unloaded", Subject: "skill", ID: s.Ref(), State: audit.Gone, Prev: before.AuditSeq}); err != nil {
		return err
	}
	if err := tx.Delete(bSkill, key); err != nil {
		return err
	}
	tx.Changed("skill", s.Ref(), nil)
	return tx.Put(bDropped, skillKey(s), []byte(s.Digest))
}

// touch notes when the registry changed.
func touch(tx *audit.Tx) error {
	at, err := tx.Now().MarshalText()
	if err != nil {
		return fmt.Errorf("encode the time: %w", err)
	}
	return tx.Put(bRegistry, []byte(RegistryID), at)
}

// readIndex reads a tenant's skills.
func (r *registry) readIndex(tx store.Tx) (*index, error) {
	x := newIndex()
	err := eachSkill(tx, func(s *Skill) error {
		r.contracts.adopt(s)
		x.skills[s.Name] = append([]*Skill{s}, x.skills[s.Name]...) // keys sort by version, the oldest first
		return nil
	})
	x = x.with(r.own(tx.Tenant())...)
	data, bad := tx.Get(bRegistry, []byte(RegistryID))
	if err = errors.Join(err, bad); data == nil {
		return x, err
	}
	if bad := x.updated.UnmarshalText(data); bad != nil {
		err = errors.Join(err, fmt.Errorf("decode when the registry changed: %w", bad))
	}
	return x, err
}

func readSources(tx store.Tx) ([]Source, error) {
	var all []Source
	var bad error
	err := tx.Scan(bSource, nil, nil, false, func(_, value []byte) bool {
		var s Source
		if bad = core.DecodeStored(value, &s); bad == nil {
			all = append(all, s)
		}
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("read the sources of skills: %w", err)
	}
	return all, nil
}

type auditedSkills struct{}

func (auditedSkills) Subject() string { return "skill" }

func (auditedSkills) States(tx store.Tx, each func(string, any) error) error {
	return eachSkill(tx, func(s *Skill) error { return each(s.Ref(), stateOf(s)) })
}

type auditedSources struct{}

func (auditedSources) Subject() string { return "skill.source" }

func (auditedSources) States(tx store.Tx, each func(string, any) error) error {
	all, err := readSources(tx)
	for _, s := range all {
		if err := each(s.Path, s); err != nil {
			return err
		}
	}
	return err
}

// readDropped lists the digests of what was unloaded, by name@version.
func readDropped(tx store.Tx, into map[string]string) error {
	return tx.Scan(bDropped, nil, nil, false, func(key, value []byte) bool {
		name, ver, _ := strings.Cut(string(key), "\x00")
		into[name+"@"+versionOf(ver)] = string(value)
		return true
	})
}
