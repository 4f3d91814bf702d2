package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

func (h *house) rotate() audit.Key {
	h.t.Helper()
	return expect.Of(h.RotateKey(h.t.Context(), alice, h.sealer))(h.t)
}

func (h *house) keys() []audit.Key {
	h.t.Helper()
	return expect.Of(h.Keys(h.t.Context(), acme, h.sealer))(h.t)
}

// spans is "FIRST-LAST word" of each key.
func spans(keys []audit.Key) (all []string) {
	for i, k := range keys {
		word := "first"
		if k.Unsigned {
			word = "unsigned"
		} else if k.SignedBy != "" {
			word = "signed"
			if k.SignedBy != keys[i-1].KeyID {
				word = "signed by another"
			}
		}
		all = append(all, fmt.Sprintf("%d-%d %s", k.First, k.Last, word))
	}
	return all
}

func (h *house) fault() error { return h.KeyFault(h.t.Context(), acme, h.sealer) }

func TestARotatedKeyIsSignedByTheOldOneAndSignsFromThenOn(t *testing.T) {
	h := newHouse(t)
	h.record(3)
	old, oldKey := h.checkpoint(), h.sealer.Verifier(acme)
	k := h.rotate()
	expect.Must(t, k.Verifier == h.sealer.Verifier(acme) && k.Verifier != oldKey && k.First == 5, "%+v", k)
	c, err := audit.ParseCheckpoint(h.checkpoint(), k.Verifier)
	expect.Must(t, err == nil && c.Size == 5, "the transaction that names the key is not sealed with it: %v %v", c, err)
	h.record(2)
	h.close()
	h.open()
	h.rotate()
	h.record(1)
	r := h.verify(old)
	if !r.OK || h.fault() != nil {
		t.Fatal(r.Problems, h.fault())
	}
	if want := []string{"4-4 first", "5-7 signed", "8-0 signed"}; !slices.Equal(spans(r.Keys), want) || !slices.Equal(spans(h.keys()), want) {
		t.Errorf("%q and %q, want %q", spans(r.Keys), spans(h.keys()), want)
	}
	page, err := h.List(t.Context(), acme, core.Filter{Kind: "audit.key"})
	expect.Must(t, err == nil && len(page.Items) == 3 && page.Items[0].Actor == alice.Name && page.Items[2].Actor == "audit", "%v %v", page, err)
	if text, err := os.ReadFile(h.key); err != nil || bytes.Count(text, []byte("\n")) != 3 || bytes.Count(text, []byte("PRIVATE")) != 1 {
		t.Errorf("the key file holds more than one key: %s", text)
	}
}

func TestAKeyThatItsPredecessorDidNotSignIsNamedForEver(t *testing.T) {
	aside := func(h *house, name string) string { return filepath.Join(filepath.Dir(h.key), name) }
	for name, exchange := range map[string]func(h *house) error{
		"made anew":      func(h *house) error { return os.Remove(h.key) },
		"from elsewhere": func(h *house) error { openSealer(t, aside(h, "x")); return os.Rename(aside(h, "x"), h.key) },
		"an earlier one": func(h *house) error { return os.Rename(aside(h, "old"), h.key) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.record(3)
			text, err := os.ReadFile(h.key)
			if err == nil {
				err = os.WriteFile(aside(h, "old"), text, 0o600)
			}
			expect.No(t, err)
			h.rotate()
			expect.No(t, h.fault())
			h.close()
			expect.No(t, exchange(h))
			h.open()
			if h.fault() == nil { // before any event
				t.Fatal("the open reports nothing")
			}
			h.record(2)
			h.rotate()
			h.close()
			h.open()
			h.record(1)
			bad := h.keys()[2]
			want := fmt.Sprintf("signing key %s was not signed by the key before it, %s", bad.KeyID, h.keys()[1].KeyID)
			expect.Says(t, h.fault(), want, "the open reports")
			r := h.verify(nil)
			expect.True(t, len(r.Problems) == 1 && strings.Contains(r.Problems[0], want) && strings.Contains(r.Problems[0], bad.Event),
				"verify reports %q, want %s", r.Problems, want)
			if want := []string{"4-4 first", "5-7 signed", "8-8 unsigned", "9-0 signed"}; !slices.Equal(spans(r.Keys), want) {
				t.Errorf("%q, want %q", spans(r.Keys), want)
			}
		})
	}
}

func TestALogThatSleptThroughRotationsNamesThemAll(t *testing.T) {
	h := newHouse(t)
	h.record(1)
	bob := core.Caller{Tenant: other, Name: "bob", Kind: core.Operator, Door: core.DoorCLI}
	act := func() {
		t.Helper()
		expect.No(t, h.Refuse(t.Context(), bob, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil))
	}
	act()
	h.rotate()
	h.rotate()
	h.close()
	h.open()
	for range 2 {
		r, err := h.Verify(t.Context(), other, nil)
		expect.Must(t, err == nil && r.OK && h.KeyFault(t.Context(), other, h.sealer) == nil, "%v %v", r, err)
		act()
	}
	keys, err := h.Keys(t.Context(), other, h.sealer)
	if want := []string{"2-3 first", "4-4 signed", "5-0 signed"}; err != nil || !slices.Equal(spans(keys), want) {
		t.Errorf("%q, want %q", spans(keys), want)
	}
}

// A process may end between any two steps of a rotation. What it leaves is
// what is on disk then: the key file of before or after, and a log with or
// without the event.
func TestARotationCutShortLeavesAKeyInForce(t *testing.T) {
	h := newHouse(t)
	h.record(2)
	before := h.keys()[0].Verifier
	gone, stop := context.WithCancel(t.Context())
	stop()
	_, err := h.RotateKey(gone, alice, h.sealer)
	expect.Must(t, err != nil && h.sealer.Verifier(acme) == before, "a rotation that nobody waits for went on: %v", err)
	if err := os.WriteFile(h.key+".new-1", []byte("x"), 0o600); err != nil { // killed before the rename
		t.Fatal(err)
	}
	// The file is exchanged, and nothing is committed.
	copied := filepath.Join(t.TempDir(), "copy.db")
	expect.Of(h.db.Backup(t.Context(), copied))(t)
	h.rotate()
	h.close()
	expect.No(t, os.Rename(copied, h.data))
	h.open()
	if h.sealer.Verifier(acme) == before || h.fault() != nil {
		t.Fatal(h.fault())
	}
	h.record(1)
	r := h.verify(nil)
	expect.True(t, len(r.Keys) == 2 && r.OK, "%+v", r)
	left, _ := filepath.Glob(h.key + ".new-*")
	expect.True(t, len(left) == 0, "left behind: %v", left)
}

func TestVerifyRefusesACheckpointOfAFormerKey(t *testing.T) {
	h := newHouse(t)
	h.record(2)
	old := expect.Of(os.ReadFile(h.key))(t)
	h.rotate()
	// Whoever stole the old key signs the log's newest head with it.
	stolen := filepath.Join(t.TempDir(), "stolen")
	expect.No(t, os.WriteFile(stolen, old, 0o600))
	forged := signAs(t, stolen, h.checkpoint())
	got := h.verify(forged).Problems
	expect.True(t, len(got) == 1 && strings.Contains(got[0], "was not the log's key then"), "a saved checkpoint: %q", got)
	h.tamper(func(tx store.Tx) error { return tx.Put(headBucket, []byte("checkpoint"), forged) })
	got = h.verify(nil).Problems
	expect.True(t, len(got) != 0 && strings.Contains(got[0], "not signed by a known key"), "the stored checkpoint: %q", got)
}

// signAs signs the text of a checkpoint again, with the key in a key file.
func signAs(t *testing.T, key string, checkpoint []byte) []byte {
	t.Helper()
	line := expect.Of(os.ReadFile(key))(t)
	parts := strings.SplitN(strings.TrimSpace(string(line)), "+", 5)
	seed := expect.Of(base64.StdEncoding.DecodeString(parts[4]))(t)
	text, _, _ := strings.Cut(string(checkpoint), "\n\n")
	origin, _, _ := strings.Cut(text, "\n")
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	verifier := expect.Of(note.NewEd25519VerifierKey(origin, public))(t)
	hash := strings.Split(verifier, "+")[1]
	signer := expect.Of(note.NewSigner("PRIVATE+KEY+" + origin + "+" + hash + "+" + parts[4]))(t)
	return expect.Of(note.Sign(&note.Note{Text: text + "\n"}, signer))(t)
}

// Whatever a key file holds, it is a key and the rotations that led to it, or
// an error.
func FuzzKeyFile(f *testing.F) {
	const good = "PRIVATE+KEY+swarmdeck+676b92bf+ASOdgIo0JfhMGBU0WsdfSaG/zUdJNAXscvDfi8vPxFst\n"
	f.Add(good)
	f.Add(good + "a b c\n")
	f.Add("PRIVATE+KEY+swarmdeck+00000000+AAAA\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "audit.key")
		expect.No(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := audit.OpenSealer(path)
		if err == nil && (s.Verifier(acme) == "" || len(s.Trusted(acme)) != len(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))) {
			t.Errorf("another key, made of %q", text)
		}
	})
}
