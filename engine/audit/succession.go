package audit

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"swarmdeck/engine/core"
)

// maxLinks is how many former keys the key file remembers. A log that took no
// event during more rotations than that reports the next key as unsigned.
const maxLinks = 1000

// link is one rotation: a key and the one that it named as the next. Public
// keys are base64 of their 32 bytes.
type link struct {
	from, to, signature string // signature: base64, by from, over statement(from, to)
}

// statement is what a key signs to name the next one. It names no log, because
// all logs of a data file share their key.
func statement(from, to string) []byte {
	return []byte("swarmdeck/key-rotation\n" + from + "\n" + to + "\n")
}

func publicOf(key ed25519.PrivateKey) string {
	public, _ := key.Public().(ed25519.PublicKey)
	return base64.StdEncoding.EncodeToString(public)
}

// publicIn is the public key in a verifier key, "" when there is none.
func publicIn(verifier string) string {
	parts := strings.SplitN(verifier, "+", 3)
	if _, err := note.NewVerifier(verifier); err != nil || len(parts) != 3 {
		return ""
	}
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw[1:])
}

// signed reports whether the key from named the key to as the next.
func (n link) signed() bool {
	public, err := base64.StdEncoding.DecodeString(n.from)
	signature, bad := base64.StdEncoding.Strict().DecodeString(n.signature)
	return err == nil && bad == nil && verified(public, statement(n.from, n.to), signature)
}

func verified(public, text, signature []byte) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, text, signature)
}

// parseLinks reads the lines of the key file that follow the key: FROM TO
// SIGNATURE, oldest first, the last one to the key itself.
func parseLinks(lines []string, key ed25519.PrivateKey) ([]link, error) {
	var links []link
	for i, line := range lines {
		parts := strings.Split(line, " ")
		if len(parts) != 3 {
			return nil, fmt.Errorf("line %d is not FROM TO SIGNATURE", i+2)
		}
		n := link{parts[0], parts[1], parts[2]}
		if !n.signed() || len(links) > 0 && links[len(links)-1].to != n.from {
			return nil, fmt.Errorf("line %d: the key is not signed by the one before it", i+2)
		}
		links = append(links, n)
	}
	if len(links) > 0 && links[len(links)-1].to != publicOf(key) {
		return nil, errors.New("its last line does not lead to its key")
	}
	return links, nil
}

// keyText is the key file of a key: one line for it, one for each rotation.
func keyText(line string, links []link) string {
	var b strings.Builder
	b.WriteString(line + "\n")
	for _, n := range links {
		b.WriteString(n.from + " " + n.to + " " + n.signature + "\n")
	}
	return b.String()
}

// next are the keys that a log has still to name, given those that it names:
// none when the one here may sign; else each rotation since one that may, or the key
// here without a signature when no rotation leads to it. It is an UntrustedError where
// the log is one that other engines go on with too. s.mu is held.
func (s *Sealer) next(tenant string, named []namedKey) ([]namedKey, error) {
	now := verifierOf(publicOf(s.key), tenant)
	if len(named) == 0 {
		return []namedKey{{verifier: now, way: keyEvent}}, nil
	}
	may := signersOf(tenant, named)
	if may.may(now) {
		return nil, nil
	}
	for i, n := range slices.Backward(s.links) {
		if !may.may(verifierOf(n.from, tenant)) {
			continue
		}
		return core.Map(s.links[i:], func(n link) namedKey {
			return namedKey{verifier: verifierOf(n.to, tenant), way: keyEvent, by: verifierOf(n.from, tenant), signature: n.signature}
		}), nil
	}
	if s.shared {
		return nil, &UntrustedError{Tenant: tenant, KeyID: keyID(now), Request: s.request(publicIn(may.founder))}
	}
	return []namedKey{{verifier: now, way: keyEvent, by: may.valid[len(may.valid)-1]}}, nil
}

// Trusted are the verifier keys of a tenant's log that the key file vouches
// for: the present one, then those before it.
func (s *Sealer) Trusted(tenant string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []string{verifierOf(publicOf(s.key), tenant)}
	for _, n := range slices.Backward(s.links) {
		all = append(all, verifierOf(n.from, tenant))
	}
	return all
}

// verifierOf is the verifier key of a tenant's log for a public key.
func verifierOf(public, tenant string) string {
	raw, _ := base64.StdEncoding.DecodeString(public)
	verifier, err := note.NewEd25519VerifierKey(Origin(tenant), raw)
	if err != nil {
		return "" // not for a tenant id that core.CheckTenant accepts
	}
	return verifier
}

// RotateKey makes a new signing key, signed by the old one, which is then gone.
// The caller's log says so in the transaction that is the first to be sealed
// with the new key; the logs of other tenants name it with their next event.
// The key file holds the old key or the new one, whenever the process ends:
// once it holds the new one, the next commit takes that up.
func (l *Ledger) RotateKey(ctx context.Context, by core.Caller, s *Sealer) (Key, error) {
	if s == nil {
		return Key{}, core.Errorf(core.Unavailable, "audit key: there is no signing key here")
	}
	s.rotating.Lock()
	defer s.rotating.Unlock()
	next, line, err := newKey()
	if err != nil {
		return Key{}, fmt.Errorf("make a signing key: %w", err)
	}
	n := link{from: publicOf(s.key), to: publicOf(next)}
	n.signature = base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, statement(n.from, n.to)))
	links := append(slices.Clone(s.links), n)
	links = links[max(0, len(links)-maxLinks):]
	if err := ctx.Err(); err != nil {
		return Key{}, err
	}
	if err := replaceKey(s.path, keyText(line, links)); err != nil {
		return Key{}, fmt.Errorf("audit signing key %s: %w", s.path, err)
	}
	// From here on it is the new key, whatever becomes of the update.
	defer s.adopt(next, links)
	var made Key
	err = l.Update(context.WithoutCancel(ctx), by, func(tx *Tx) error {
		s.adopt(next, links)
		named, err := s.announce(tx.Tx, func(e *Entry) (uint64, error) { return tx.Record(*e) })
		if err == nil {
			all, _ := keysOf(tx.Tenant(), named)
			made = all[len(all)-1]
		}
		return err
	})
	if err != nil {
		return Key{}, fmt.Errorf("the new signing key is in force, and the log will name it with its next event: %w", err)
	}
	return made, nil
}

func (s *Sealer) adopt(key ed25519.PrivateKey, links []link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.links = key, links
	clear(s.logs)
}
