package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Key is a signing key of one log: it may sign each checkpoint from the size
// First on. Engines that share a database may have one each.
type Key struct {
	KeyID    string `json:"key_id"` // 8 hex digits: the key hash of C2SP signed notes
	Verifier string `json:"verifier"`
	First    uint64 `json:"first_seq"`          // of the event that names it; 0 while none does
	Event    string `json:"event_id,omitzero"`  // its id
	Last     uint64 `json:"last_seq,omitzero"`  // of the newest event under it; 0 while it may sign
	SignedBy string `json:"signed_by,omitzero"` // id of the key that signed it: the one before it, or one that trusts it
	Trusted  bool   `json:"trusted,omitzero"`   // beside the one that signed it, not in its place
	// Retired is the id of the event that ended it at the word of another key.
	Retired   string `json:"retired,omitzero"`
	RetiredBy string `json:"retired_by,omitzero"`
	// Unsigned says that the key before it did not sign it: the key file was
	// exchanged or lost, or the data file moved away from it.
	Unsigned bool `json:"unsigned,omitzero"`
}

// keyID is the hash part of a verifier key.
func keyID(verifier string) string {
	parts := strings.SplitN(verifier, "+", 3)
	if len(parts) != 3 {
		return core.Clip(verifier)
	}
	return core.Clip(parts[1])
}

// verifiersOf are the keys that might ever sign a log, oldest first.
func verifiersOf(tenant string, named []namedKey) (all []string) {
	s := signers{origin: Origin(tenant)}
	for i := range named {
		_ = s.take(&named[i])
		if v := named[i].verifier; s.may(v) && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// namedText is how the keys that a log names are kept beside its checkpoint:
// a line for each, oldest first. VERIFIER SEQ [SIGNATURE] is one that takes the
// place of the one before, all others have VERIFIER SEQ SIGNATURE|- TYPE BY [ACCEPTED].
func namedText(named []namedKey) []byte {
	var b []byte
	before := ""
	for _, k := range named {
		b = strconv.AppendUint(append(append(b, k.verifier...), ' '), k.seq, 10)
		plain := k.way == keyEvent && k.by == before
		if k.signature != "" || !plain {
			b = append(append(b, ' '), cmp.Or(k.signature, "-")...)
		}
		if !plain {
			b = append(append(append(append(b, ' '), k.way...), ' '), k.by...)
		}
		if k.accepted != "" {
			b = append(append(b, ' '), k.accepted...)
		}
		b = append(b, '\n')
		before = k.verifier
	}
	return b
}

var errNamed = errors.New("is not VERIFIER SEQ [SIGNATURE [TYPE BY [ACCEPTED]]]")

func readNamed(tx store.Tx) ([]namedKey, error) {
	data, err := tx.Get(heads, verifiersKey)
	if err != nil {
		return nil, fmt.Errorf("read the verifier keys of %s: %w", tx.Tenant(), err)
	}
	var named []namedKey
	before := ""
	for line := range strings.Lines(string(data)) {
		k, ok := readNamedLine(line, before)
		if !ok {
			return nil, fmt.Errorf("the verifier keys of %s: line %d: %w", tx.Tenant(), len(named)+1, errNamed)
		}
		named, before = append(named, k), k.verifier
	}
	return named, nil
}

func readNamedLine(line, before string) (k namedKey, ok bool) {
	parts := strings.Fields(line)
	n := len(parts)
	if n < 2 || n == 4 || n > 6 {
		return k, false
	}
	parts = append(parts, make([]string, 6-n)...)
	k = namedKey{verifier: parts[0], signature: strings.TrimPrefix(parts[2], "-"), way: keyEvent, by: before, accepted: parts[5]}
	if n > 4 {
		k.way, k.by = parts[3], parts[4]
	}
	var err error
	k.seq, err = strconv.ParseUint(parts[1], 10, 64)
	return k, err == nil && namesKey(k.way)
}

// keyFault is what is wrong with an event that names a key.
type keyFault struct {
	seq uint64
	err error
}

// keysOf tells of each key from which event to which it might sign, and what is wrong.
func keysOf(tenant string, named []namedKey) (all []Key, faults []keyFault) {
	prefix := idPrefix(tenant)
	at := func(seq uint64) string {
		if seq == 0 {
			return ""
		}
		return string(appendID(nil, prefix, seq))
	}
	s := signers{origin: Origin(tenant)}
	for i := range named {
		k := &named[i]
		had := slices.Clone(s.valid)
		err := s.take(k)
		if err != nil {
			faults = append(faults, keyFault{k.seq, err})
		}
		for j := range all { // those that may sign no more
			if slices.Contains(had, all[j].Verifier) && all[j].valid() && !s.may(all[j].Verifier) && k.seq > 0 {
				all[j].Last = k.seq - 1
				if k.way == retireEvent {
					all[j].Retired, all[j].RetiredBy = at(k.seq), keyID(k.by)
				}
			}
		}
		if k.way == retireEvent || slices.Contains(had, k.verifier) && s.may(k.verifier) {
			continue
		}
		one := Key{KeyID: keyID(k.verifier), Verifier: k.verifier, First: k.seq, Event: at(k.seq), Trusted: k.way == trustEvent, Unsigned: err != nil}
		if err == nil && i > 0 {
			one.SignedBy = keyID(k.by)
		}
		if err != nil && !s.may(k.verifier) {
			one.Last = k.seq
		}
		all = append(all, one)
	}
	return all, faults
}

func (k *Key) valid() bool { return k.Last == 0 && (!k.Unsigned || !k.Trusted) }

// finishKeys reports the keys, and those that came without a rotation.
func (v *verifier) finishKeys() {
	var faults []keyFault
	v.report.Keys, faults = keysOf(v.tenant, v.named)
	for _, f := range faults {
		v.problem("event seq %d (%s): %v", f.seq, v.id(f.seq), f.err)
	}
}

func unsigned(key, before string) string {
	return fmt.Sprintf("signing key %s was not signed by the key before it, %s: the key file was exchanged or lost, or the data file is away from it", key, before)
}

// Keys are the signing keys of a log, oldest first. With the sealer the last
// ones may be keys that the log does not name yet, because it had no event since.
func (l *Ledger) Keys(ctx context.Context, tenant string, s *Sealer) ([]Key, error) {
	named, err := l.named(ctx, tenant, s)
	keys, _ := keysOf(tenant, named)
	return keys, err
}

func (l *Ledger) named(ctx context.Context, tenant string, s *Sealer) ([]namedKey, error) {
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
		fresh, unknown := s.next(tenant, named)
		s.mu.Unlock()
		if unknown == nil { // else it will never be in this log
			named = append(named, fresh...)
		}
	}
	return named, nil
}

// KeyFault tells what is wrong with the keys of a log, by reading no event: a
// key that came without a rotation, once the sealer has it and for ever after.
// It is one line for each.
func (l *Ledger) KeyFault(ctx context.Context, tenant string, s *Sealer) error {
	named, err := l.named(ctx, tenant, s)
	if err != nil {
		return err
	}
	_, found := keysOf(tenant, named)
	faults := core.Map(found, func(f keyFault) error { return f.err })
	return errors.Join(faults...)
}
