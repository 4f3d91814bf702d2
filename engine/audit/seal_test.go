package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestCheckpointIsTheTreeOfTheEvents(t *testing.T) {
	h := newHouse(t)
	for _, n := range []int{1, 1, 5, 64, 1, 130} {
		h.record(n)
		// The reference implementation's tree over the exported lines.
		var log bytes.Buffer
		expect.No(t, h.Export(t.Context(), acme, "jsonl", &log))
		var stored []tlog.Hash
		read := tlog.HashReaderFunc(func(at []int64) (out []tlog.Hash, err error) {
			for _, i := range at {
				out = append(out, stored[i])
			}
			return out, nil
		})
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		for i, line := range lines {
			hashes := expect.Of(tlog.StoredHashes(int64(i), []byte(line), read))(t)
			stored = append(stored, hashes...)
		}
		root := expect.Of(tlog.TreeHash(int64(len(lines)), read))(t)
		v := expect.Of(note.NewVerifier(h.sealer.Verifier(acme)))(t)
		signed := expect.Of(note.Open(h.checkpoint(), note.VerifierList(v)))(t)
		want := fmt.Sprintf("swarmdeck/%s\n%d\n%s\n", acme, len(lines), root)
		expect.Must(t, signed.Text == want, "checkpoint %q, want %q", signed.Text, want)
	}
	r := h.verify(nil)
	expect.True(t, r.OK && r.Events == 203, "report %+v", r)
}

func TestSealGoesOnAfterReopening(t *testing.T) {
	h := newHouse(t)
	for _, n := range []int{3, 7, 1, 22} {
		h.record(n)
		before := h.checkpoint()
		h.close()
		h.open()
		expect.Must(t, bytes.Equal(before, h.checkpoint()), "reopening changed the checkpoint")
	}
	r := h.verify(nil)
	expect.True(t, r.OK && r.Events == 34, "report %+v", r)
}

func TestSealSurvivesACommitThatFailsAfterIt(t *testing.T) {
	dir := t.TempDir()
	sealer := openSealer(t, filepath.Join(dir, "audit.key"))
	full := errors.New("disk full")
	var fail error
	db := openStore(t, filepath.Join(dir, "data.db"), store.Options{Seal: func(tx store.Tx) error {
		return errors.Join(sealer.Seal(tx), fail)
	}})
	l := audit.New(db, audit.Options{Trusted: func(string) []string { return []string{sealer.Verifier(acme)} }})
	for i := range 12 {
		fail = nil
		if i%3 != 0 {
			fail = full
		}
		err := l.Update(t.Context(), alice, func(tx *audit.Tx) error {
			_, err := tx.Record(entry(fmt.Sprint("step.", i), "tk_1"))
			return err
		})
		expect.Must(t, errors.Is(err, fail), "%v %v", i, err)
	}
	r, err := l.Verify(t.Context(), acme, nil)
	expect.True(t, err == nil && r.OK && r.Events == 5, "report %+v, %v", r, err)
}

func TestTenantsAreSealedApart(t *testing.T) {
	h := newHouse(t)
	h.record(3)
	bob := core.Caller{Tenant: other, Name: "bob", Kind: core.Operator, Door: core.DoorSSH}
	expect.No(t, h.Refuse(t.Context(), bob, audit.Entry{Type: "tenant.violation", Subject: "task", ID: "x"}, nil))
	for tenant, want := range map[string]uint64{acme: 4, other: 2} {
		r, err := h.Verify(t.Context(), tenant, nil)
		expect.True(t, err == nil && r.OK && r.Events == want, "%s: %+v, %v", tenant, r, err)
	}
	r := h.verify(mustCheckpoint(t, h, other))
	expect.True(t, len(r.Problems) != 0 && strings.Contains(strings.Join(r.Problems, "\n"), "the saved checkpoint is of swarmdeck/t_other"),
		"another tenant's checkpoint: %q", r.Problems)
}

func mustCheckpoint(t *testing.T, h *house, tenant string) []byte {
	t.Helper()
	return expect.Of(h.Checkpoint(t.Context(), tenant))(t)
}

func TestSealRefusesToSignOverDamage(t *testing.T) {
	h := newHouse(t)
	h.record(9)
	h.tamper(func(tx store.Tx) error { return replaceTree(tx, func(v []byte) { v[len(v)-1] ^= 1 }) })
	err := h.Update(t.Context(), alice, func(tx *audit.Tx) error {
		_, err := tx.Record(entry("task.queued", "tk_1"))
		return err
	})
	expect.Says(t, err, "does not match its signed checkpoint")
}

func TestReadOnlyLogCanBeReadAndVerified(t *testing.T) {
	h := newHouse(t)
	h.record(3)
	saved := h.checkpoint()
	h.close()
	db := openStore(t, h.data, store.Options{ReadOnly: true})
	l := audit.New(db, audit.Options{})
	r, err := l.Verify(t.Context(), acme, saved)
	expect.True(t, err == nil && r.OK, "%+v, %v", r, err)
	expect.Of(l.Prove(t.Context(), acme, core.NewID("ev", acme, 2)))(t)
	cause := core.Errorf(core.Denied, "no")
	expect.Is[error](t, l.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, cause), cause, "refusal in read-only")
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "deep", "audit.key")
	first := openSealer(t, path).Verifier(acme)
	expect.Is(t, openSealer(t, path).Verifier(acme), first, "the key changed")
	info, err := os.Stat(path)
	expect.Must(t, err == nil && info.Mode().Perm() == 0o600, "mode %v, %v", info.Mode(), err)
	left, _ := filepath.Glob(path + ".new-*")
	expect.True(t, len(left) == 0, "left behind: %v", left)
	good := expect.Of(os.ReadFile(path))(t)
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable by others": {string(good), 0o644, "chmod 600"},
		"empty":              {"", 0o600, "not a key of the form"},
		"rubbish":            {"hello\n", 0o600, "not a key of the form"},
		"cut":                {string(good[:len(good)-9]), 0o600, "not a key of the form"},
		"another name":       {strings.Replace(string(good), "swarmdeck", "somebody", 1), 0o600, "not a key of the form"},
		"huge":               {strings.Repeat("x", 1<<20), 0o600, "not a key of the form"},
		"more after it":      {string(good) + "x\n", 0o600, "line 2 is not FROM TO SIGNATURE"},
		"a forged rotation":  {string(good) + "AAAA AAAA AAAA\n", 0o600, "line 2: the key is not signed by the one before it"},
	} {
		bad := filepath.Join(dir, "bad.key")
		expect.No(t, errors.Join(os.WriteFile(bad, []byte(c.text), 0o600), os.Chmod(bad, c.mode)))
		_, err := audit.OpenSealer(bad)
		expect.True(t, err != nil && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), bad), "%s: %v", name, err)
		now, _ := os.ReadFile(bad)
		expect.True(t, string(now) == c.text, "%s: the file was changed", name)
	}
	expect.Says(t, expect.Fault(audit.OpenSealer(dir)), "not a regular file", "directory")
}
