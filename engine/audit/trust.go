package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// UntrustedError says that a log does not trust the signing key of this machine.
type UntrustedError struct {
	Tenant string
	KeyID  string
	// Request is what TrustKey takes: 128 characters.
	Request string
}

// Error names the one command that helps.
func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the log of %s does not trust this machine's signing key %s; where an engine has the tenant, run: swarmdeck --tenant %s audit key trust %s",
		e.Tenant, e.KeyID, e.Tenant, e.Request)
}

// Is makes it a store.ErrUnusable: this machine can't write there.
func (e *UntrustedError) Is(target error) bool { return target == store.ErrUnusable }

// request asks for the key to be one of the logs that founder founded, a public key.
// s.mu is held.
func (s *Sealer) request(founder string) string {
	public, _ := s.key.Public().(ed25519.PublicKey)
	signature := ed25519.Sign(s.key, request(founder, publicOf(s.key)))
	return base64.RawURLEncoding.EncodeToString(append(bytes.Clone(public), signature...))
}

// readRequest gives the key that asks, a public key, and its signature.
func readRequest(text string) (public, signature string, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize+ed25519.SignatureSize || SmallOrder(raw[:ed25519.PublicKeySize]) {
		return "", "", core.Invalid("request", text, "the 128 characters that the other machine names where it says that its key is not trusted")
	}
	return base64.StdEncoding.EncodeToString(raw[:ed25519.PublicKeySize]), base64.StdEncoding.EncodeToString(raw[ed25519.PublicKeySize:]), nil
}

// SmallOrder says that a public key of Ed25519 is one of the few for which signatures can
// be made without a private key; RFC 8032 leaves it to who accepts keys to refuse them.
// They are named by the y of their points, little-endian, of which 0 and 1 have two
// encodings.
func SmallOrder(public []byte) bool {
	y := bytes.Clone(public)
	y[len(y)-1] &= 0x7f // without the sign of x
	switch hex.EncodeToString(y) {
	case "0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f":
		return true
	}
	return false
}

// MaySign is an UntrustedError when the log of a transaction's tenant would not take
// what this key signs.
func (s *Sealer) MaySign(tx store.Tx) error {
	named, err := readNamed(tx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.next(tx.Tenant(), named)
	return err
}

// Public is the public key, base64, by which Signers name it; "" of no sealer.
func (s *Sealer) Public() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return publicOf(s.key)
}

// Signers are the public keys that may sign the log of a transaction's tenant, none
// while it has no events.
func Signers(tx store.Tx) ([]string, error) {
	named, err := readNamed(tx)
	if err != nil {
		return nil, err
	}
	all := core.Map(signersOf(tx.Tenant(), named).valid, publicIn)
	return all, nil
}

// TrustKey lets the key of another engine sign the caller's log too, at its request, as
// its UntrustedError has it. One that may sign already is left as it is, a CONFLICT.
func (l *Ledger) TrustKey(ctx context.Context, by core.Caller, s *Sealer, text string) (Key, error) {
	public, accepted, err := readRequest(text)
	if err != nil {
		return Key{}, err
	}
	return l.nameKey(ctx, by, s, func(may *signers) (namedKey, error) {
		k := namedKey{verifier: verifierOf(public, by.Tenant), way: trustEvent, accepted: accepted}
		switch {
		case may.may(k.verifier):
			return k, core.Errorf(core.Conflict, "key %s may sign this log already", keyID(k.verifier))
		case !signedBy(k.verifier, accepted, request(publicIn(may.founder), public)):
			return k, core.Errorf(core.InvalidInput, "request: key %s asked for another log, whose first key is not %s", keyID(k.verifier), keyID(may.founder)).With("field", "request")
		}
		return k, nil
	})
}

// RetireKey ends what another key may sign in the caller's log; id is its KeyID.
// What it signed before stays valid.
func (l *Ledger) RetireKey(ctx context.Context, by core.Caller, s *Sealer, id string) (Key, error) {
	return l.nameKey(ctx, by, s, func(may *signers) (namedKey, error) {
		for _, v := range may.valid {
			if keyID(v) == id {
				return namedKey{verifier: v, way: retireEvent}, nil
			}
		}
		return namedKey{}, core.Missing("signing key", id)
	})
}

// nameKey records an event about another key, which the one here signs.
func (l *Ledger) nameKey(ctx context.Context, by core.Caller, s *Sealer, choose func(*signers) (namedKey, error)) (made Key, err error) {
	if s == nil {
		return made, core.Errorf(core.Unavailable, "audit key: there is no signing key here")
	}
	err = l.Update(ctx, by, func(tx *Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		named, err := s.names(tx.Tx, func(e *Entry) (uint64, error) { return tx.Record(*e) })
		if err != nil {
			return err
		}
		may := signersOf(tx.Tenant(), named)
		k, err := choose(&may)
		if err != nil {
			return err
		}
		if k.by = verifierOf(publicOf(s.key), tx.Tenant()); k.by == k.verifier {
			return core.Errorf(core.Conflict, "key %s is the one that the engine which has the tenant signs with: retire it where another has it, or rotate it", keyID(k.by))
		}
		k.seq = tx.Next()
		k.signature = base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, k.statement(Origin(tx.Tenant()))))
		if _, err := tx.Record(*k.entry()); err != nil {
			return err
		}
		named = append(named, k)
		all, _ := keysOf(tx.Tenant(), named)
		for _, one := range all { // the newest of its entries
			if one.Verifier == k.verifier {
				made = one
			}
		}
		return tx.Tx.Put(heads, bytes.Clone(verifiersKey), namedText(named))
	})
	return made, err
}
