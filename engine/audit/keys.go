package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Key is a signing key of one log. It signed every checkpoint from the size
// First on, until the next key did.
type Key struct {
	KeyID    string `json:"key_id"` // 8 hex digits: the key hash of C2SP signed notes
	Verifier string `json:"verifier"`
	First    uint64 `json:"first_seq"`          // of the event that names it; 0 while none does
	Event    string `json:"event_id,omitzero"`  // its id
	Last     uint64 `json:"last_seq,omitzero"`  // of the newest event under it; 0 for the key in force
	SignedBy string `json:"signed_by,omitzero"` // id of the key before it, which signed it
	// Unsigned says that the key before it did not sign it: the key file was
	// exchanged or lost, or the data file moved away from it.
	Unsigned bool `json:"unsigned,omitzero"`
}

// namedKey is a key as an event of the log names it.
type namedKey struct {
	verifier  string
	seq       uint64 // of the event
	signature string // of the rotation, by the key before it; "" for none
}

// keyID is the hash part of a verifier key.
func keyID(verifier string) string {
	parts := strings.SplitN(verifier, "+", 3)
	if len(parts) != 3 {
		return core.Clip(verifier)
	}
	return core.Clip(parts[1])
}

func verifiersOf(named []namedKey) []string {
	all := make([]string, len(named))
	for i, k := range named {
		all[i] = k.verifier
	}
	return all
}

// namedText is how the keys that a log names are kept beside its checkpoint:
// a line VERIFIER SEQ [SIGNATURE] for each, oldest first.
func namedText(named []namedKey) []byte {
	var b []byte
	for _, k := range named {
		b = strconv.AppendUint(append(append(b, k.verifier...), ' '), k.seq, 10)
		if k.signature != "" {
			b = append(append(b, ' '), k.signature...)
		}
		b = append(b, '\n')
	}
	return b
}

var errNamed = errors.New("is not VERIFIER SEQ [SIGNATURE]")

func readNamed(tx store.Tx) ([]namedKey, error) {
	data, err := tx.Get(heads, verifiersKey)
	if err != nil {
		return nil, fmt.Errorf("read the verifier keys of %s: %w", tx.Tenant(), err)
	}
	var named []namedKey
	for line := range strings.Lines(string(data)) {
		parts := append(strings.Fields(line), "", "")
		k := namedKey{verifier: parts[0], signature: parts[2]}
		if k.seq, err = strconv.ParseUint(parts[1], 10, 64); err != nil || len(parts) > 5 {
			return nil, fmt.Errorf("the verifier keys of %s: line %d: %w", tx.Tenant(), len(named)+1, errNamed)
		}
		named = append(named, k)
	}
	return named, nil
}

// keysOf tells of each key what it signed, and whether the one before it named it.
func keysOf(tenant string, named []namedKey) []Key {
	prefix := idPrefix(tenant)
	all := make([]Key, len(named))
	for i, k := range named {
		all[i] = Key{KeyID: keyID(k.verifier), Verifier: k.verifier, First: k.seq}
		if k.seq > 0 {
			all[i].Event = string(appendID(nil, prefix, k.seq))
		}
		if i == 0 {
			continue
		}
		before := named[i-1]
		if k.seq > 0 {
			all[i-1].Last = k.seq - 1
		}
		if n := (link{publicIn(before.verifier), publicIn(k.verifier), k.signature}); n.signed() {
			all[i].SignedBy = keyID(before.verifier)
		} else {
			all[i].Unsigned = true
		}
	}
	return all
}

// keyAt is the verifier key in force when the log had so many events.
func keyAt(named []namedKey, size uint64) (verifier string) {
	for _, k := range named {
		if k.seq <= size {
			verifier = k.verifier
		}
	}
	return verifier
}

// finishKeys reports the keys, and those that came without a rotation.
func (v *verifier) finishKeys() {
	v.report.Keys = keysOf(v.tenant, v.named)
	for i, k := range v.report.Keys {
		if k.Unsigned {
			v.problem("event seq %d (%s): %s", k.First, k.Event, unsigned(k.KeyID, v.report.Keys[i-1].KeyID))
		}
	}
}

func unsigned(key, before string) string {
	return fmt.Sprintf("signing key %s was not signed by the key before it, %s: the key file was exchanged or lost, or the data file is away from it", key, before)
}

// Keys are the signing keys of a log, oldest first. With the sealer the last
// ones may be keys that the log does not name yet, because it had no event since.
func (l *Ledger) Keys(ctx context.Context, tenant string, s *Sealer) ([]Key, error) {
	var named []namedKey
	err := l.st.View(ctx, tenant, func(tx store.Tx) (err error) {
		named, err = readNamed(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if s != nil {
		s.mu.Lock()
		named = append(named, s.next(tenant, named)...)
		s.mu.Unlock()
	}
	return keysOf(tenant, named), nil
}

// KeyFault tells what is wrong with the keys of a log, by reading no event: a
// key that came without a rotation, once the sealer has it and for ever after.
// It is one line for each.
func (l *Ledger) KeyFault(ctx context.Context, tenant string, s *Sealer) error {
	keys, err := l.Keys(ctx, tenant, s)
	if err != nil {
		return err
	}
	var faults []error
	for i, k := range keys {
		if k.Unsigned {
			faults = append(faults, errors.New(unsigned(k.KeyID, keys[i-1].KeyID)))
		}
	}
	return errors.Join(faults...)
}
