package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// newShared is a house whose log engines with keys of their own go on with.
func newShared(t *testing.T) *house {
	h := newHouse(t)
	h.shared = true
	h.reopen()
	h.record(2)
	return h
}

func (h *house) reopen() {
	h.t.Helper()
	h.close()
	h.open()
}

// as goes on as the engine of a machine, and returns the key file of the one before.
func (h *house) as(machine string) (before string) {
	h.t.Helper()
	before = h.key
	h.key = filepath.Join(filepath.Dir(h.data), filepath.Base(machine))
	h.reopen()
	return before
}

// asks is what the engine here asks for, "" when its key may sign.
func (h *house) asks() string {
	h.t.Helper()
	var untrusted *audit.UntrustedError
	err := h.db.View(h.t.Context(), acme, h.sealer.MaySign)
	if err != nil && !errors.As(err, &untrusted) {
		h.t.Fatal(err)
	} else if err == nil {
		return ""
	}
	return untrusted.Request
}

// trust has the key of a machine trusted by the one here.
func (h *house) trust(machine string) audit.Key {
	h.t.Helper()
	first := h.as(machine)
	request := h.asks()
	h.as(first)
	return expect.Of(h.TrustKey(h.t.Context(), alice, h.sealer, request))(h.t)
}

func (h *house) endKey(id string) error {
	_, err := h.RetireKey(h.t.Context(), alice, h.sealer, id)
	return err
}

func TestAnotherMachinesKeySignsALogOnceThatTrustsIt(t *testing.T) {
	h := newShared(t)
	first := h.as("two.key")
	refused := h.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil)
	var untrusted *audit.UntrustedError
	expect.Must(t, errors.As(refused, &untrusted) && strings.Contains(refused.Error(), "audit key trust "+untrusted.Request) && len(untrusted.Request) == 128,
		"a key that nobody trusts signs: %v", refused)
	_, err := h.TrustKey(t.Context(), alice, h.sealer, untrusted.Request)
	expect.Must(t, errors.As(err, &untrusted), "a key trusts itself: %v", err)
	r := h.verify(nil)
	expect.True(t, len(r.Problems) == 1 && r.Events == 3 && strings.Contains(r.Problems[0], "not a trusted key"), "%+v", r)
	h.as(first)
	r = h.verify(nil)
	expect.True(t, r.OK, "%v", r.Problems)
	k := h.trust("two.key")
	expect.True(t, k.Trusted && k.First == 4 && k.SignedBy == h.keys()[0].KeyID, "%+v", k)
	expect.Is(t, core.AsError(expect.Fault(h.TrustKey(t.Context(), alice, h.sealer, untrusted.Request))).Code, core.Conflict, "trusted twice:")
	h.record(1)
	for _, machine := range []string{"two.key", first, "two.key"} {
		h.as(machine)
		h.record(1, 2)
		if r := h.verify(nil); !r.OK || h.fault() != nil || h.asks() != "" {
			t.Fatal(r.Problems, h.fault())
		}
		c, err := audit.ParseCheckpoint(h.checkpoint(), h.sealer.Verifier(acme))
		expect.True(t, err == nil, "it is signed with another key: %v %v", c, err)
	}
	h.rotate()
	h.record(1)
	h.as(first)
	h.record(1)
	r = h.verify(nil)
	expect.True(t, r.OK, "%v", r.Problems)
	got, want := spans(h.keys()), []string{"3-0 first", "4-14 signed", "15-0 signed"}
	expect.True(t, slices.Equal(got, want), "%q, want %q", got, want)
	proof := expect.Of(h.Prove(t.Context(), acme, h.keys()[1].Event))(t)
	e, err := h.CheckProof(t.Context(), acme, proof)
	expect.True(t, err == nil && e.EventType == "audit.key.trusted", "%v %v", e, err)
}

func TestAKeyThatWasRetiredSignsNoMore(t *testing.T) {
	h := newShared(t)
	first := h.key
	two := h.trust("two.key")
	h.as("two.key")
	h.record(1)
	expect.Is(t, core.AsError(h.endKey(two.KeyID)).Code, core.Conflict, "a key retires itself:")
	h.as(first)
	expect.Is(t, core.AsError(h.endKey("00000000")).Code, core.NotFound, "no key was retired:")
	expect.No(t, h.endKey(two.KeyID))
	h.record(1)
	k := h.keys()[1]
	expect.True(t, k.Last == 5 && k.Retired == core.NewID(core.EventPrefix, acme, 6) && k.RetiredBy == h.keys()[0].KeyID, "%+v", k)
	h.as("two.key")
	var untrusted *audit.UntrustedError
	err := h.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil)
	expect.True(t, errors.As(err, &untrusted), "a retired key signs: %v", err)
	h.as(first)
	r := h.verify(nil)
	expect.True(t, r.OK && r.Events == 7, "%+v", r)
	h.trust("two.key")
	h.as("two.key")
	h.record(1)
	r = h.verify(nil)
	expect.True(t, r.OK && len(r.Keys) == 3, "trusted again: %+v", r)
}

func TestARequestIsForTheLogsOfOneFirstKey(t *testing.T) {
	h, elsewhere := newShared(t), newShared(t)
	elsewhere.as("two.key")
	request := elsewhere.asks()
	for _, text := range []string{request, "", "x", request[1:], strings.Repeat("A", 128)} {
		_, err := h.TrustKey(t.Context(), alice, h.sealer, text)
		e := core.AsError(err)
		expect.True(t, e.Code == core.InvalidInput && e.Details["field"] == "request", "%q: %v", text, err)
	}
	r := h.verify(nil)
	expect.True(t, r.OK && len(r.Keys) == 1, "%+v", r)
}

// A signature by a point of small order fits every fourth or eighth text.
func TestAKeyThatAnybodyCanSignForIsNotTrusted(t *testing.T) {
	h := newShared(t)
	for _, y := range []string{
		"00", "01", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "ec", "ed", "ee",
	} {
		for _, sign := range []byte{0, 0x80} {
			public := make([]byte, ed25519.PublicKeySize)
			if y[0] == 'e' {
				copy(public, bytes.Repeat([]byte{0xff}, ed25519.PublicKeySize))
				public[31] = 0x7f
			}
			expect.Of(hex.Decode(public, []byte(y)))(t)
			public[31] |= sign
			signature := make([]byte, ed25519.SignatureSize)
			signature[0] = 1
			fits := 0
			for i := range 1000 {
				if ed25519.Verify(public, fmt.Append(nil, i), signature) {
					fits++
				}
			}
			text := base64.RawURLEncoding.EncodeToString(append(public, signature...))
			_, err := h.TrustKey(t.Context(), alice, h.sealer, text)
			expect.True(t, fits != 0 && err != nil && core.AsError(err).Code == core.InvalidInput, "%x signs %d of 1000 texts: %v", public, fits, err)
		}
	}
}

// forger can write the store, and has a key that the log does not trust.
type forger struct {
	*house
	key string // its file
}

func (f *forger) sign(text string) string {
	f.t.Helper()
	line := expect.Of(os.ReadFile(f.key))(f.t)
	seed := expect.Of(base64.StdEncoding.DecodeString(strings.SplitN(strings.TrimSpace(string(line)), "+", 5)[4]))(f.t)
	return base64.StdEncoding.EncodeToString(ed25519.Sign(ed25519.NewKeyFromSeed(seed[1:]), []byte(text)))
}

// public is the public key in a verifier key.
func public(verifier string) string {
	raw, _ := base64.StdEncoding.DecodeString(strings.SplitN(verifier, "+", 3)[2])
	return base64.StdEncoding.EncodeToString(raw[1:])
}

// event puts an event about a key into the log, and seals that with the forger's key.
func (f *forger) event(typ string, detail map[string]string) {
	f.t.Helper()
	seq := uint64(0)
	err := f.Update(f.t.Context(), alice, func(tx *audit.Tx) (err error) {
		seq, err = tx.Record(audit.Entry{Type: typ, Subject: "audit_key", ID: "k", Detail: detail})
		return err
	})
	expect.No(f.t, err)
	head := signAs(f.t.(*testing.T), f.key, f.checkpoint())
	f.tamper(func(tx store.Tx) error {
		lines, err := tx.Get(headBucket, []byte("verifiers"))
		if err != nil {
			return err
		}
		lines = fmt.Appendf(bytes.Clone(lines), "%s %d %s %s %s %s\n", detail["verifier"], seq, detail["signature"], typ, detail["by"], detail["accepted"])
		return errors.Join(tx.Put(headBucket, []byte("verifiers"), lines), tx.Put(headBucket, []byte("checkpoint"), head))
	})
}

func TestVerifyFindsEachKeyThatWasNeverTrusted(t *testing.T) {
	const trusted, retired = "audit.key.trusted", "audit.key.retired"
	says := func(typ string, seq uint64, key string) string {
		return fmt.Sprintf("swarmdeck/%s\nswarmdeck/%s\n%d\n%s\n", typ, acme, seq, public(key))
	}
	for name, c := range map[string]struct {
		// do gets a house whose log trusts two.key until event 5, and has 6 events; a
		// forger with the key that was retired; and the verifier keys of both.
		do   func(f *forger, one, two string)
		want []string
	}{
		"a seal of a retired key": {func(f *forger, _, _ string) {
			head := signAs(f.t.(*testing.T), f.key, f.checkpoint())
			f.tamper(func(tx store.Tx) error { return tx.Put(headBucket, []byte("checkpoint"), head) })
		}, []string{"stored checkpoint does not hold"}},
		"a seal of a key that was never there": {func(f *forger, _, _ string) {
			f.key = filepath.Join(f.t.TempDir(), "stranger")
			openSealer(f.t, f.key)
			head := signAs(f.t.(*testing.T), f.key, f.checkpoint())
			f.tamper(func(tx store.Tx) error { return tx.Put(headBucket, []byte("checkpoint"), head) })
		}, []string{"stored checkpoint does not hold"}},
		"trusted by itself": {func(f *forger, one, two string) {
			f.event(trusted, map[string]string{
				"verifier": two, "by": two, "signature": f.sign(says(trusted, 7, two)),
				"accepted": f.sign("swarmdeck/key-request\n" + public(one) + "\n" + public(two) + "\n"),
			})
		}, []string{"was trusted without the signature of a key that was valid then", "stored checkpoint does not hold"}},
		"trusted in the name of a valid key": {func(f *forger, one, two string) {
			f.event(trusted, map[string]string{
				"verifier": two, "by": one, "signature": f.sign(says(trusted, 7, two)),
				"accepted": f.sign("swarmdeck/key-request\n" + public(one) + "\n" + public(two) + "\n"),
			})
		}, []string{"was trusted without the signature of a key that was valid then", "stored checkpoint does not hold"}},
		"what once trusted it, said again": {func(f *forger, one, two string) {
			page, err := f.List(f.t.Context(), acme, core.Filter{Kind: trusted})
			expect.Must(f.t, err == nil && len(page.Items) == 1, "%v %v", page, err)
			p := expect.Of(page.Items[0].Data())(f.t)
			var detail map[string]string
			expect.No(f.t, core.Decode(p.Detail, &detail))
			f.event(trusted, detail)
		}, []string{"was trusted without the signature of a key that was valid then", "stored checkpoint does not hold"}},
		"it retires the valid key": {func(f *forger, one, two string) {
			f.event(retired, map[string]string{"verifier": one, "by": two, "signature": f.sign(says(retired, 7, one))})
		}, []string{"was retired without the signature of a key that was valid then", "stored checkpoint does not hold"}},
		"it takes the place of the valid key": {func(f *forger, one, two string) {
			f.event("audit.key", map[string]string{"verifier": two, "replaces": one, "by": one, "signature": f.sign("swarmdeck/key-rotation\n" + public(one) + "\n" + public(two) + "\n")})
		}, []string{"was not signed by the key before it", "which is not a trusted key"}},
		"only the list of keys says that it is trusted": {func(f *forger, one, two string) {
			f.tamper(func(tx store.Tx) error {
				lines, err := tx.Get(headBucket, []byte("verifiers"))
				return errors.Join(err, tx.Put(headBucket, []byte("verifiers"), fmt.Appendf(bytes.Clone(lines), "%s 6 x audit.key.trusted %s x\n", two, one)))
			})
		}, []string{"the stored verifier keys are not the ones"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newShared(t)
			two := h.trust("two.key")
			one := h.sealer.Verifier(acme)
			expect.No(t, h.endKey(two.KeyID))
			h.record(1)
			c.do(&forger{h, filepath.Join(filepath.Dir(h.data), "two.key")}, one, two.Verifier)
			got := h.verify(nil).Problems
			for i, want := range c.want {
				expect.Must(t, len(got) == len(c.want) && strings.Contains(got[i], want), "%q, want %q", got, c.want)
			}
			taken := name == "it takes the place of the valid key"
			expect.True(t, taken != (h.asks() == ""), "the engine of the valid key goes on with a log that the forger took, or leaves its own")
			h.as("two.key")
			expect.True(t, h.asks() != "" || taken, "the forger's key may sign")
		})
	}
}

func TestACheckpointCountsOnlyWhereItsKeyWasTrusted(t *testing.T) {
	h := newShared(t)
	dir := filepath.Dir(h.data)
	sign := func() []byte { return signAs(t, filepath.Join(dir, "two.key"), h.checkpoint()) }
	h.as(h.as("two.key")) // makes the key
	early := sign()
	two := h.trust("two.key")
	h.record(1)
	within := sign()
	expect.No(t, h.endKey(two.KeyID))
	h.record(1)
	late := sign()
	for name, c := range map[string]struct {
		saved []byte
		ok    bool
	}{"before it was trusted": {early, false}, "while it was": {within, true}, "after it was retired": {late, false}} {
		r := h.verify(c.saved)
		expect.True(t, r.OK == c.ok && (c.ok || strings.Contains(r.Problems[0], "was not the log's key then")), "%s: %q", name, r.Problems)
	}
}

// Somebody who can write the store founds a log with a key of their own, which trusts
// the key of this machine by what that asked for elsewhere.
func TestALogThatSomebodyMadeUpIsNotGoneOnWith(t *testing.T) {
	h := newShared(t)
	h.trust("two.key")
	page := expect.Of(h.List(t.Context(), acme, core.Filter{Kind: "audit.key.trusted"}))(t)
	p, _ := page.Items[0].Data()
	var detail map[string]string
	expect.No(t, core.Decode(p.Detail, &detail))
	made := newHouse(t)
	made.record(1)
	f := &forger{made, made.key}
	detail["by"] = made.sealer.Verifier(acme)
	detail["signature"] = f.sign(fmt.Sprintf("swarmdeck/audit.key.trusted\nswarmdeck/%s\n3\n%s\n", acme, public(detail["verifier"])))
	f.event("audit.key.trusted", detail)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(h.data), "two.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(made.data), "two.key"), text, 0o600)
	}
	expect.No(t, err)
	made.shared = true
	made.as("two.key")
	expect.True(t, made.asks() != "", "the engine would go on with it")
	got := made.verify(nil).Problems
	expect.True(t, len(got) == 2 && strings.Contains(got[0], "did not ask for it") && strings.Contains(got[1], "not a trusted key"), "%q", got)
}
