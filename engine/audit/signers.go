package audit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
)

// The ways in which an event of the log names a key, by the type of the event.
const (
	// keyEvent is recorded when a log is first signed with a key that founds it or
	// takes the place of another.
	keyEvent = "audit.key"
	// trustEvent is recorded when a key that may sign lets another sign too.
	trustEvent = "audit.key.trusted"
	// retireEvent is recorded when a key that may sign ends that of another.
	retireEvent = "audit.key.retired"
)

// namesKey says that events of a type name keys. They never leave the log.
func namesKey(typ string) bool { return typ == keyEvent || typ == trustEvent || typ == retireEvent }

// namedKey is a key as an event of the log names it.
type namedKey struct {
	verifier  string
	seq       uint64 // of the event; 0 while there is none
	way       string // type of the event
	by        string // verifier key that signed it, and that it takes the place of with keyEvent; "" for the first
	signature string // by by, base64; "" for none
	accepted  string // with trustEvent: what the key signed to be one of this log, base64
}

// statement is what by signs of a key.
func (k *namedKey) statement(origin string) []byte {
	if k.way == keyEvent {
		return statement(publicIn(k.by), publicIn(k.verifier))
	}
	// Of one place in one log: what was said once can't be said again elsewhere.
	return fmt.Appendf(nil, "swarmdeck/%s\n%s\n%d\n%s\n", k.way, origin, k.seq, publicIn(k.verifier))
}

// request is what a key signs to be one of the logs that another one founded. So a log
// that somebody made up can't have the keys of others in it.
func request(founder, key string) []byte {
	return []byte("swarmdeck/key-request\n" + founder + "\n" + key + "\n")
}

// signers are the keys that may sign a log after some of its events.
type signers struct {
	origin  string
	founder string   // verifier key of the first, or of the last that came unsigned
	valid   []string // verifier keys, the newest last
}

func (s *signers) may(verifier string) bool { return slices.Contains(s.valid, verifier) }

// take goes on past an event that names a key, and says what is wrong with that. A key
// that takes another's place without its signature is the first of what follows: those
// before it may sign no more. Any other thing that is wrong has no effect.
func (s *signers) take(k *namedKey) error {
	id, by := keyID(k.verifier), keyID(k.by)
	signed := s.may(k.by) && signedBy(k.by, k.signature, k.statement(s.origin))
	drop := func(verifier string) {
		s.valid = slices.DeleteFunc(s.valid, func(v string) bool { return v == verifier })
	}
	switch k.way {
	case keyEvent:
		if signed {
			drop(k.by)
			drop(k.verifier)
			s.valid = append(s.valid, k.verifier)
			return nil
		}
		first := s.founder == ""
		s.founder, s.valid = k.verifier, []string{k.verifier}
		if first {
			return nil
		}
		return errors.New(unsigned(id, by))
	case trustEvent:
		switch {
		case !signed:
			return fmt.Errorf("signing key %s was trusted without the signature of a key that was valid then (it names %s)", id, by)
		case !signedBy(k.verifier, k.accepted, request(publicIn(s.founder), publicIn(k.verifier))):
			return fmt.Errorf("signing key %s was trusted by %s, and did not ask for it", id, by)
		}
		drop(k.verifier)
		s.valid = append(s.valid, k.verifier)
	case retireEvent:
		switch {
		case !signed:
			return fmt.Errorf("signing key %s was retired without the signature of a key that was valid then (it names %s)", id, by)
		case k.by == k.verifier || !s.may(k.verifier):
			return fmt.Errorf("signing key %s was retired by %s, and was none that could be", id, by)
		}
		drop(k.verifier)
	}
	return nil
}

// signersAt are the keys that may sign a log when it has so many events.
func signersAt(tenant string, named []namedKey, size uint64) signers {
	s := signers{origin: Origin(tenant)}
	for i := range named {
		if named[i].seq <= size {
			_ = s.take(&named[i])
		}
	}
	return s
}

func signersOf(tenant string, named []namedKey) signers {
	return signersAt(tenant, named, 1<<63)
}

// signedBy reports whether the key of a verifier key signed a text.
func signedBy(verifier, signature string, text []byte) bool {
	public, err := base64.StdEncoding.DecodeString(publicIn(verifier))
	raw, bad := base64.StdEncoding.Strict().DecodeString(signature)
	return err == nil && bad == nil && verified(public, text, raw)
}
