package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

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
	return fmt.Sprintf("the log of %s does not trust this machine's signing key %s; where an engine has the tenant, run: swarmdeck --tenant %s audit key trust %s; for all tenants at once, at any engine: audit key endorse, with the same request",
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
	return l.trust(ctx, by, s, text, "")
}

// trust is TrustKey, by an event of another log where endorsed names one.
func (l *Ledger) trust(ctx context.Context, by core.Caller, s *Sealer, text, endorsed string) (Key, error) {
	public, accepted, err := readRequest(text)
	if err != nil {
		return Key{}, err
	}
	return s.nameKey(ctx, l, by, endorsed, func(may *signers) (namedKey, error) {
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
	return s.nameKey(ctx, l, by, "", func(may *signers) (namedKey, error) {
		for _, v := range may.valid {
			if keyID(v) == id {
				return namedKey{verifier: v, way: retireEvent}, nil
			}
		}
		return namedKey{}, core.Missing("signing key", id)
	})
}

func errNoKey() error {
	return core.Errorf(core.Unavailable, "audit key: there is no signing key here")
}

// nameKey records an event about another key, which the one here signs; endorsed is the
// event of another log that it follows, or "".
func (s *Sealer) nameKey(ctx context.Context, l *Ledger, by core.Caller, endorsed string, choose func(*signers) (namedKey, error)) (made Key, err error) {
	if s == nil {
		return made, errNoKey()
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
		if _, err := tx.Record(*k.entry(endorsed)); err != nil {
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

// endorseEvent is recorded when the key here speaks for another to all engines of a
// database.
const endorseEvent = "audit.key.endorsed"

// maxEndorsed bounds the endorsements in one log, of which the oldest go.
const maxEndorsed = 32

// Endorsement is the word of a signing key, for each log that it may sign, that another
// may sign that log too. It holds by its signature, wherever it is read.
type Endorsement struct {
	KeyID     string `json:"key_id"` // of the other, in the log that records it
	Request   string `json:"request"`
	By        string `json:"by"`        // public key, base64
	Signature string `json:"signature"` // by it, base64
	Event     string `json:"event_id"`  // that records it
}

// statement is what the signature is of.
func (e Endorsement) statement() []byte { return []byte("swarmdeck/key-endorsed\n" + e.Request + "\n") }

// Endorse records in the caller's log that this key speaks for another, at its request, as
// an UntrustedError has it. In this log too that has an effect by Follow alone.
func (s *Sealer) Endorse(ctx context.Context, l *Ledger, by core.Caller, text string) (e Endorsement, err error) {
	public, _, err := readRequest(text)
	if err != nil {
		return e, err
	}
	if s == nil {
		return e, errNoKey()
	}
	err = l.Update(ctx, by, func(tx *Tx) error {
		all, err := Endorsed(tx.Tx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		e = Endorsement{KeyID: keyID(verifierOf(public, by.Tenant)), Request: text, By: publicOf(s.key)}
		e.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, e.statement()))
		s.mu.Unlock()
		seq, err := tx.Record(Entry{Type: endorseEvent, Subject: "audit_key", ID: e.KeyID, Detail: e})
		if err != nil {
			return err
		}
		e.Event = string(appendID(nil, idPrefix(by.Tenant), seq))
		all = append(all, e)
		var b []byte
		for _, e := range all[max(0, len(all)-maxEndorsed):] {
			b = fmt.Appendln(b, e.KeyID, e.Request, e.By, e.Signature, e.Event)
		}
		return tx.Tx.Put(heads, bytes.Clone(endorsedKey), b)
	})
	return e, err
}

var errEndorsed = errors.New("is not KEY REQUEST BY SIGNATURE EVENT")

// Endorsed are the endorsements in the log of a transaction's tenant, oldest first. Who
// can write the store can write them: what they say holds by their signatures alone.
func Endorsed(tx store.Tx) (all []Endorsement, err error) {
	data, err := tx.Get(heads, endorsedKey)
	if err != nil {
		return nil, fmt.Errorf("read the endorsed keys of %s: %w", tx.Tenant(), err)
	}
	for line := range strings.Lines(string(data)) {
		p := strings.Fields(line)
		if len(p) != 5 || len(all) == maxEndorsed {
			return nil, fmt.Errorf("the endorsed keys of %s: line %d: %w", tx.Tenant(), len(all)+1, errEndorsed)
		}
		all = append(all, Endorsement{KeyID: p[0], Request: p[1], By: p[2], Signature: p[3], Event: p[4]})
	}
	return all, nil
}

// Follow is TrustKey for a tenant's log by each endorsement of a key that may sign that log
// and asks for it, and returns how many there were. A key that the log named before is left
// as it is: an old word does not undo that it was retired.
func (s *Sealer) Follow(ctx context.Context, l *Ledger, tenant string, all ...Endorsement) (trusted int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	named, err := l.named(ctx, tenant, nil)
	if err != nil {
		return 0, err
	}
	may, known := signersOf(tenant, named), map[string]bool{}
	for _, k := range named {
		known[k.verifier] = true
	}
	for _, e := range all {
		public, accepted, bad := readRequest(e.Request)
		by, other := verifierOf(e.By, tenant), verifierOf(public, tenant)
		if bad != nil || known[other] || !may.may(by) ||
			!signedBy(by, e.Signature, e.statement()) || !signedBy(other, accepted, request(publicIn(may.founder), public)) {
			continue
		}
		if _, err := l.trust(ctx, core.Self(tenant, "audit"), s, e.Request, e.Event); err != nil {
			return trusted, err
		}
		known[other] = true
		trusted++
	}
	return trusted, nil
}
