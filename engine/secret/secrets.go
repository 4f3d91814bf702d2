// Package secret keeps values that nobody is shown: credentials that processes
// get in their environment. A record names one by a reference, @NAME; only
// where a process starts is it replaced by the value, and what that process
// prints is masked from then on.
//
// Values lie in the data file encrypted by age, to a key in a file of its own.
// Nothing here gives one out but Resolve. Masking covers a value as it is and
// in common encodings; a program that wants to can always write it in another
// way.
package secret

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"filippo.io/age"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Limits of secrets.
const (
	MinValue   = 6        // bytes of a value besides white space around it; masking less would blot out words
	MaxValue   = 64 << 10 // bytes
	MaxSecrets = 1000     // of a tenant
	maxSealed  = MaxValue + 4096
)

// Secret is what may be told of one.
type Secret struct {
	TenantID  string    `json:"tenant_id"`
	Name      string    `json:"name"`             // ^[A-Za-z][A-Za-z0-9_]{0,63}$
	Origin    string    `json:"origin,omitempty"` // who gave it in clear, such as agent:NAME; "" when it was set
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

type stored struct {
	Secret
	Sealed []byte `json:"sealed"` // by age
}

// state is what the log says of a secret: nothing that its value could be
// guessed from.
func (s *stored) state() any {
	sum := sha256.Sum256(s.Sealed)
	return struct {
		Origin string `json:"origin,omitempty"`
		Sealed string `json:"sealed"` // digest of the ciphertext
	}{s.Origin, "sha256:" + hex.EncodeToString(sum[:])}
}

// Secrets keeps the secrets of every tenant. It is safe for concurrent use.
type Secrets struct {
	ledger *audit.Ledger
	kind   record.Table[stored]
	keys   keyring
	out    handedOut
	held   func(tenant, agent string) map[string]string
}

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	Key    string // path of the key file, which is made with the first secret
	// Held is the environment of an agent as its record has it: an agent can
	// give to others only what it was given. nil gives agents nothing.
	Held func(tenant, agent string) map[string]string
}

// New makes it.
func New(opt Options) *Secrets {
	s := &Secrets{
		ledger: opt.Ledger, keys: keyring{path: opt.Key}, held: opt.Held,
		kind: &record.Kind[*stored]{
			Noun: "secret", Bucket: "secret", Limit: MaxSecrets, Ledger: opt.Ledger,
			ID:    func(one *stored) string { return one.Name },
			State: (*stored).state,
		},
	}
	opt.Ledger.Register(s.kind.Auditable())
	return s
}

// Set gives a secret its value, which is as it is but for the line's end after
// a single line. It says whether that was created or changed.
func (s *Secrets) Set(ctx context.Context, by core.Caller, name string, value []byte) (Secret, string, error) {
	if text := bytes.TrimRight(value, "\r\n"); !bytes.ContainsAny(text, "\r\n") {
		value = text
	}
	return s.put(ctx, by, name, "", value)
}

func checkValue(value []byte) error {
	bad := func(allowed string) error {
		return core.Errorf(core.InvalidInput, "value: %d bytes; allowed: %s", len(value), allowed).With("field", "value")
	}
	switch {
	case len(value) > MaxValue:
		return bad("at most 64 KiB")
	case len(bytes.TrimSpace(value)) < MinValue:
		return bad("6 bytes or more besides white space around them; hiding a shorter text would blot out much else")
	case bytes.IndexByte(value, 0) >= 0:
		return core.Errorf(core.InvalidInput, "value: has a NUL byte; allowed: what an environment variable can hold").With("field", "value")
	}
	return nil
}

func (s *Secrets) put(ctx context.Context, by core.Caller, name, origin string, value []byte) (made Secret, action string, err error) {
	if err := errors.Join(CheckName(name), checkValue(value)); err != nil {
		return made, "", err
	}
	key, err := s.writing(ctx, by.Tenant)
	if err != nil {
		return made, "", err
	}
	sealed, err := seal(key, by.Tenant, name, value)
	if err != nil {
		return made, "", err
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, name)
		if err != nil {
			return err
		}
		now := stored{Secret{Name: name, Origin: origin, CreatedBy: by.Name, UpdatedBy: by.Name}, sealed}
		if action = record.Created; old != nil {
			if origin != "" && old.Origin != origin {
				return core.Errorf(core.Conflict, "secret %s was set meanwhile", name)
			}
			action, now.CreatedBy = record.Changed, old.CreatedBy
		}
		err = s.kind.Save(tx, record.Event{Type: "secret." + action}, old, &now)
		made = now.Secret
		return err
	})
	return made, action, err
}

// writing is the key for new values. A new key is made only where no secret
// waits for an old one.
func (s *Secrets) writing(ctx context.Context, tenant string) (key *age.X25519Identity, err error) {
	if key, err = s.keys.get(); !errors.Is(err, errNoKey) {
		return key, err
	}
	have, err := s.List(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if len(have) > 0 {
		return nil, core.Errorf(core.Conflict, "the key file %s is missing and %d secrets are sealed with its key: put it back, or delete them", s.keys.path, len(have))
	}
	return s.keys.getOrMake()
}

// Delete removes a secret. What refers to it does not start any more.
func (s *Secrets) Delete(ctx context.Context, by core.Caller, name string) (Secret, error) {
	gone, err := record.Value(s.kind.Delete(ctx, by, "secret.deleted", core.Cut(name, 64)))
	return gone.Secret, err
}

// List lists a tenant's secrets by name.
func (s *Secrets) List(ctx context.Context, tenant string) ([]Secret, error) {
	found, err := s.kind.List(ctx, tenant)
	return core.Map(found, func(s *stored) Secret { return s.Secret }), err
}

// Fault says that secrets of a tenant can't be opened with the key that is on this
// machine, and how many: another machine has set them, whose key is not here. It is nil
// where all can.
func (s *Secrets) Fault(ctx context.Context, tenant string) error {
	all, err := s.kind.List(ctx, tenant)
	if err != nil || len(all) == 0 {
		return err
	}
	key, err := s.keys.get()
	if err != nil && !errors.Is(err, errNoKey) {
		return err
	}
	shut := 0
	for i := range all {
		if err == nil {
			if _, bad := open(key, all[i]); bad == nil {
				continue
			}
		}
		shut++
	}
	if shut == 0 {
		return nil
	}
	return core.Errorf(core.Unavailable, "%d of %d secrets can't be opened on this machine: copy the key of the one that set them to %s, or set them again", shut, len(all), s.keys.path)
}
