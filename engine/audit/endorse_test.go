package audit_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// endorse has the key here speak for that of a machine.
func (h *house) endorse(machine string) audit.Endorsement {
	h.t.Helper()
	first := h.as(machine)
	request := h.asks()
	h.as(first)
	return expect.Of(h.sealer.Endorse(h.t.Context(), h.Ledger, alice, request))(h.t)
}

func (h *house) follows(tenant string, e audit.Endorsement) bool {
	h.t.Helper()
	return expect.Of(h.sealer.Follow(h.t.Context(), h.Ledger, tenant, e, e))(h.t) == 1
}

func TestEachLogThatTrustsAKeyTakesItsWordForAnother(t *testing.T) {
	h := newShared(t)
	bob := alice
	bob.Tenant = other
	expect.No(t, h.Refuse(t.Context(), bob, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil))
	e := h.endorse("two.key")
	first := h.as("two.key")
	expect.True(t, h.asks() != "", "a word alone makes a key valid")
	h.as(first)
	for _, tenant := range []string{acme, other} {
		expect.True(t, h.follows(tenant, e) && !h.follows(tenant, e), "%s follows once", tenant)
		expect.True(t, expect.Of(h.Verify(t.Context(), tenant, nil))(t).OK, "the log of %s", tenant)
	}
	page := expect.Of(h.List(t.Context(), other, core.Filter{Kind: "audit.key.trusted"}))(t)
	p := expect.Of(page.Items[0].Data())(t)
	expect.True(t, strings.Contains(string(p.Detail), `"endorsed":"`+e.Event+`"`), "%s", p.Detail)
	h.as("two.key")
	h.record(1)
	h.as(first)
	expect.No(t, h.endKey(e.KeyID))
	expect.True(t, !h.follows(acme, e), "an old word undoes that a key was retired")
	h.healthy()
}

func TestAWordForAKeyIsWorthAsMuchAsItsSignature(t *testing.T) {
	h, elsewhere := newShared(t), newShared(t)
	e := h.endorse("two.key")
	first := h.as("three.key")
	asked := h.asks()
	h.as(first)
	theirs := elsewhere.endorse("two.key")
	for name, change := range map[string]func(*audit.Endorsement){
		"for another key":              func(e *audit.Endorsement) { e.Request = asked },
		"by a key that is not trusted": func(e *audit.Endorsement) { *e = theirs },
		"in the name of a trusted key": func(e *audit.Endorsement) { e.Signature = theirs.Signature },
		"of the key for itself": func(e *audit.Endorsement) {
			raw := expect.Of(base64.RawURLEncoding.DecodeString(e.Request))(t)
			e.By = base64.StdEncoding.EncodeToString(raw[:32])
		},
		"nonsense": func(e *audit.Endorsement) { e.Request = strings.Repeat("A", 128) },
	} {
		forged := e
		change(&forged)
		expect.True(t, !h.follows(acme, forged), "%s", name)
	}
	expect.True(t, !elsewhere.follows(acme, e), "a log that the key may not sign follows")
	expect.True(t, len(h.keys()) == 1 && h.follows(acme, e), "keys: %v", h.keys())
	_, err := h.sealer.Endorse(t.Context(), h.Ledger, alice, asked[1:])
	expect.Is(t, core.AsError(err).Code, core.InvalidInput, "half a request:")
}

func TestALogKeepsItsLastEndorsements(t *testing.T) {
	h := newShared(t)
	first := h.as("two.key")
	request := h.asks()
	h.as(first)
	var last audit.Endorsement
	for range 34 {
		last = expect.Of(h.sealer.Endorse(t.Context(), h.Ledger, alice, request))(t)
	}
	all := endorsed(t, h)
	expect.True(t, len(all) == 32 && all[31] == last, "%d: %+v", len(all), all)
}

func endorsed(t *testing.T, h *house) (all []audit.Endorsement) {
	expect.No(t, h.db.View(t.Context(), acme, func(tx store.Tx) (err error) {
		all, err = audit.Endorsed(tx)
		return err
	}))
	return all
}
