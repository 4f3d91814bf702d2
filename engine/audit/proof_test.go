package audit_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestProofRoundTrip(t *testing.T) {
	h := newHouse(t)
	total := uint64(0)
	for _, n := range []int{1, 1, 6, 9} {
		h.record(n)
		total = h.verify(nil).Events
		for seq := uint64(1); seq <= total; seq++ {
			id := core.NewID(core.EventPrefix, acme, seq)
			proof := expect.Of(h.Prove(t.Context(), acme, id))(t)
			e, err := audit.CheckProof(proof, h.sealer.Verifier(acme))
			expect.No(t, err, id, proof)
			want, err := h.Get(t.Context(), acme, id)
			expect.Must(t, err == nil && e.EventID == id && string(core.MustEncode(e)) == string(core.MustEncode(want)), "%+v, want %+v (%v)", e, want, err)
		}
	}
	expect.Must(t, total == 18, "%d events", total)
}

func TestProofHasTheSpecifiedForm(t *testing.T) {
	h := newHouse(t)
	h.record(4)
	proof := expect.Of(h.Prove(t.Context(), acme, core.NewID("ev", acme, 2)))(t)
	lines := strings.Split(string(proof), "\n")
	var event bytes.Buffer
	expect.No(t, h.Export(t.Context(), acme, "jsonl", &event))
	stored := strings.Split(event.String(), "\n")[1]
	if lines[0] != "c2sp.org/tlog-proof@v1" || lines[1] != "extra "+base64.StdEncoding.EncodeToString([]byte(stored)) || lines[2] != "index 1" || lines[6] != "" {
		t.Errorf("proof:\n%s", proof)
	}
	expect.True(t, bytes.HasSuffix(proof, append([]byte("\n\n"), h.checkpoint()...)), "the proof does not end with the checkpoint, verbatim")
}

func TestCheckProofRefusesEveryChangedByte(t *testing.T) {
	h := newHouse(t)
	h.record(6)
	proof := expect.Of(h.Prove(t.Context(), acme, core.NewID("ev", acme, 5)))(t)
	key := h.sealer.Verifier(acme)
	for i := range proof {
		for _, flip := range []byte{1, 4, 32, 128} {
			bad := bytes.Clone(proof)
			bad[i] ^= flip
			if e, err := audit.CheckProof(bad, key); !errors.Is(err, core.Kind(core.InvalidInput)) {
				t.Fatalf("byte %d (%q→%q) changed, accepted as %+v", i, proof[i], bad[i], e)
			}
		}
	}
	for n := range proof {
		_, err := audit.CheckProof(proof[:n], key)
		expect.Must(t, err != nil, "cut to %d of %d bytes, accepted", n, len(proof))
	}
}

func TestCheckProofWantsTheRightKey(t *testing.T) {
	h, stranger := newHouse(t), newHouse(t)
	h.record(2)
	proof, err := h.Prove(t.Context(), acme, core.NewID("ev", acme, 1))
	expect.No(t, err)
	for name, key := range map[string]string{
		"another key": stranger.sealer.Verifier(acme), "another tenant": h.sealer.Verifier(other), "no key": "", "rubbish": "a+b+c",
	} {
		_, err = audit.CheckProof(proof, key)
		expect.Fails(t, err, name)
	}
	expect.Err(t, expect.Fault(audit.CheckProof(proof, stranger.sealer.Verifier(acme))), audit.ErrUnsigned, "another key")
}

func TestProveNamesWhatItCanNotFind(t *testing.T) {
	h := newHouse(t)
	h.record(1)
	for id, kind := range map[string]core.Code{
		core.NewID("ev", acme, 99): core.NotFound, core.NewID("ev", acme, 0): core.NotFound, "x": core.InvalidInput, core.NewID("ev", other, 1): core.Denied,
	} {
		expect.Is(t, core.AsError(expect.Fault(h.Prove(t.Context(), acme, id))).Code, kind, id)
	}
	expect.Is(t, core.AsError(expect.Fault(h.Checkpoint(t.Context(), other))).Code, core.NotFound, "checkpoint of an empty log")
}

func FuzzCheckProof(f *testing.F) {
	h := newHouse(f)
	h.record(5)
	key := h.sealer.Verifier(acme)
	genuine := map[string]bool{}
	for seq := uint64(1); seq <= 6; seq++ {
		proof := expect.Of(h.Prove(f.Context(), acme, core.NewID("ev", acme, seq)))(f)
		e := expect.Of(audit.CheckProof(proof, key))(f)
		genuine[string(core.MustEncode(e))] = true
		f.Add(proof)
	}
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra \nindex 0\n\n"))
	f.Fuzz(func(t *testing.T, proof []byte) {
		e, err := audit.CheckProof(proof, key)
		expect.Must(t, err != nil || genuine[string(core.MustEncode(e))], "a forged event was proved: %+v", e)
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	h := newHouse(f)
	h.record(5)
	key := h.sealer.Verifier(acme)
	f.Add(h.checkpoint())
	f.Add([]byte("swarmdeck/t_acme\n1\nAAAA\n\n— swarmdeck/t_acme AAAAAAA=\n"))
	want := expect.Of(audit.ParseCheckpoint(h.checkpoint(), key))(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := audit.ParseCheckpoint(data, key)
		expect.Must(t, err != nil || c == want, "a forged checkpoint holds: %+v", c)
		if err != nil && !errors.Is(err, audit.ErrUnsigned) && c != (audit.Checkpoint{}) {
			t.Fatalf("%v, yet %+v", err, c)
		}
	})
}

func TestParseCheckpointNamesTheFault(t *testing.T) {
	h := newHouse(t)
	h.record(1)
	for _, c := range []struct{ text, want string }{
		{"", "malformed note"},
		{strings.Repeat("x", 1<<20), "at most"},
		{"a\n1\n\n— a AAAAAAAA\n", "three lines"},
		{"a\n01\nAAAA\n\n— a AAAAAAAA\n", `size "01"`},
		{"a\n-1\nAAAA\n\n— a AAAAAAAA\n", `size "-1"`},
		{"a\n1\nAAAA\n\n— a AAAAAAAA\n", `root hash "AAAA"`},
		{"a\n1\n" + strings.Repeat("A", 43) + "=\n\n— a AAAAAAAA\n", "not signed by a known key"},
		{fmt.Sprintf("\n1\n%s=\n\n— a AAAAAAAA\n", strings.Repeat("A", 43)), "empty origin"},
	} {
		_, err := audit.ParseCheckpoint([]byte(c.text), h.sealer.Verifier(acme))
		expect.True(t, err != nil && strings.Contains(err.Error(), c.want), "%.40q: %v, want %q", c.text, err, c.want)
	}
}
