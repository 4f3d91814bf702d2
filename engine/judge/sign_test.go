package judge_test

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// signerOf makes a key of a seed.
func signerOf(t testing.TB, seed byte) ssh.Signer {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	signer := expect.Of(ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(raw)))(t)
	return signer
}

func armored(t testing.TB, s judge.Statement, by ssh.Signer, namespace string) []byte {
	t.Helper()
	sig := expect.Of(sshsig.Sign(strings.NewReader(s.String()), by, sshsig.HashSHA512, namespace))(t)
	return sshsig.Armor(sig)
}

// crew are bob and carol, who have a key each, carol hers since a time; she is on call.
type crew struct {
	keys   map[string]string
	carols *time.Time
}

func withKeys(t testing.TB, carols *time.Time) func(*judge.Options) {
	c := crew{map[string]string{
		ssh.FingerprintSHA256(signerOf(t, 1).PublicKey()): "bob", ssh.FingerprintSHA256(signerOf(t, 2).PublicKey()): "carol",
	}, carols}
	return func(o *judge.Options) { o.People = c }
}

func (c crew) Whose(_, print string) (name string, since time.Time) {
	if name = c.keys[print]; name == "carol" {
		since = *c.carols
	}
	return name, since
}

func (c crew) Known(_, name string) bool {
	return name == "bob" || name == "carol" || name == "on-call"
}

func (c crew) Belongs(_, who, to string) bool { return who == to || who == "carol" && to == "on-call" }

// dave stands in for carol for an hour from the start.
func (c crew) StandsIn(_, who, to string, at time.Time) string {
	if who == "dave" && c.Belongs("", "carol", to) && at.Before(time.Date(2026, 5, 1, 15, 0, 0, 0, time.UTC)) {
		return "carol"
	}
	return ""
}

func TestASignatureIsOfOneAnswerByOnePerson(t *testing.T) {
	since := time.Time{}
	f := setup(t, withKeys(t, &since))
	ctx := t.Context()
	expect.Of(f.SetTerms(ctx, alice, judge.PolicyTerms{Sign: judge.SignHigh}))(t)
	a := f.opened(critical(alice))
	other := f.opened(critical(robot))
	yes := judge.Answer{Approve: true, Reason: "agreed"}
	s, needed, err := f.Statement(ctx, bob, a.ApprovalID, yes)
	if err != nil || !needed {
		t.Fatalf("%v, %v", needed, err)
	}
	good := armored(t, s, signerOf(t, 1), judge.SignNamespace)
	for name, c := range map[string]struct {
		id  string
		by  core.Caller
		ans func(*judge.Answer)
	}{
		"none":              {a.ApprovalID, bob, func(n *judge.Answer) { n.Signature = nil }},
		"another's name":    {a.ApprovalID, named(bob, "carol"), func(*judge.Answer) {}},
		"another's key":     {a.ApprovalID, bob, func(n *judge.Answer) { n.Signature = armored(t, s, signerOf(t, 2), judge.SignNamespace) }},
		"nobody's key":      {a.ApprovalID, bob, func(n *judge.Answer) { n.Signature = armored(t, s, signerOf(t, 3), judge.SignNamespace) }},
		"another namespace": {a.ApprovalID, bob, func(n *judge.Answer) { n.Signature = armored(t, s, signerOf(t, 1), "git") }},
		"another approval":  {other.ApprovalID, bob, func(*judge.Answer) {}},
		"another reason":    {a.ApprovalID, bob, func(n *judge.Answer) { n.Reason = "disagreed" }},
		"another answer":    {a.ApprovalID, bob, func(n *judge.Answer) { n.Approve = false }},
		"another end":       {a.ApprovalID, bob, func(n *judge.Answer) { n.Approve, n.Abort = false, true }},
		"another time":      {a.ApprovalID, bob, func(n *judge.Answer) { n.SignedAt = n.SignedAt.Add(time.Second) }},
		"other arguments":   {a.ApprovalID, bob, func(n *judge.Answer) { n.Edit = core.Raw(`{"argv":["ls"]}`) }},
		"garbage":           {a.ApprovalID, bob, func(n *judge.Answer) { n.Signature = []byte("-----BEGIN SSH SIGNATURE-----") }},
	} {
		ans := yes
		ans.Signature, ans.SignedAt = good, s.At
		c.ans(&ans)
		_, err = f.Answer(ctx, c.by, c.id, ans)
		expect.Is(t, code(err), core.Denied, name)
	}
	for _, got := range []judge.Approval{f.approval(a.ApprovalID), f.approval(other.ApprovalID)} {
		if got.Status != judge.Open || len(got.Consents) > 0 {
			t.Fatalf("%+v", got)
		}
	}
	yes.Signature, yes.SignedAt = good, s.At
	got, err := f.Answer(ctx, bob, a.ApprovalID, yes)
	if err != nil || !slices.Equal(got.Consenting(), []string{"bob"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := f.decision(got.DecisionID); d.Signature == nil || d.CheckSignature() != nil || d.Signature.Touched {
		t.Errorf("%+v", d.Signature)
	}
	// Carol's key became hers after the question.
	carol := named(bob, "carol")
	since = a.CreatedAt.Add(time.Minute)
	s, _, err = f.Statement(ctx, carol, a.ApprovalID, judge.Answer{Approve: true, Reason: "agreed"})
	expect.No(t, err)
	yes.Signature, yes.SignedAt = armored(t, s, signerOf(t, 2), judge.SignNamespace), s.At
	_, err = f.Answer(ctx, carol, a.ApprovalID, yes)
	expect.Is(t, code(err), core.Denied, "a key made for it")
	since = time.Time{}
	if got, err := f.Answer(ctx, carol, a.ApprovalID, yes); err != nil || got.Status != judge.Approved {
		t.Errorf("%+v, %v", got, err)
	}
	if signed, err := f.CheckSignatures(ctx, "t_acme"); err != nil || signed.Checked != 2 || len(signed.Bad) > 0 {
		t.Errorf("%+v, %v", signed, err)
	}
	f.healthy()
}

func named(by core.Caller, name string) core.Caller {
	by.Name, by.Person = name, ""
	return by
}

func TestAStatementGrowsOld(t *testing.T) {
	f := setup(t, withKeys(t, new(time.Time)))
	a := f.opened(execBy(alice, rmBuild))
	ans := judge.Answer{Approve: true, Reason: "agreed", SignedAt: time.Now().Add(-11 * time.Minute)}
	for _, at := range []time.Duration{-11 * time.Minute, 11 * time.Minute} {
		ans.SignedAt = time.Now().Add(at)
		s, _, err := f.Statement(t.Context(), bob, a.ApprovalID, ans)
		expect.No(t, err)
		ans.Signature = armored(t, s, signerOf(t, 1), judge.SignNamespace)
		if _, err := f.Answer(t.Context(), bob, a.ApprovalID, ans); code(err) != core.Denied || !strings.Contains(err.Error(), "sign it anew") {
			t.Errorf("%v: %v", at, err)
		}
	}
}

func FuzzStatement(f *testing.F) {
	f.Add(`{"answer":"approve","approval_id":"ap_1","digest":"","log":"swarmdeck/t_acme","operator":"bob","reason":"fine","tenant_id":"t_acme","time":"2026-11-26T08:00:00Z","type":"swarmdeck.answer/1"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := judge.ParseStatement([]byte(text))
		if err == nil && s.String() != text {
			t.Errorf("%q became %q", text, s)
		}
	})
}

func FuzzSignature(f *testing.F) {
	d := judge.GateDecision{TenantID: "t_acme", ApprovalID: "ap_1", DecidedBy: "bob", Decision: judge.Approve, Signature: &judge.Signature{}}
	f.Add(string(armored(f, judge.Statement{}, signerOf(f, 1), judge.SignNamespace)))
	f.Fuzz(func(t *testing.T, text string) {
		d.Signature.Text = text
		if d.CheckSignature() == nil {
			t.Error("a signature of something else holds")
		}
	})
}

func TestTheRuleThatAnAnswerMakesIsSignedWithIt(t *testing.T) {
	since := time.Time{}
	f := setup(t, withKeys(t, &since))
	expect.Of(f.SetTerms(t.Context(), alice, judge.PolicyTerms{Sign: judge.SignAll}))(t)
	a := f.opened(execBy(robot, `{"argv":["make","it"]}`))
	yes := judge.Answer{Approve: true, Always: &judge.Always{For: "anyone", Expires: time.Hour, MaxUses: 5}}
	s, _, err := f.Statement(t.Context(), bob, a.ApprovalID, yes)
	if err != nil || !strings.Contains(s.String(), `"expires":"1h0m0s","for":"anyone","max_uses":5}`) {
		t.Fatalf("%s, %v", s, err)
	}
	if again, err := judge.ParseStatement([]byte(s.String())); err != nil || again.String() != s.String() || again.Always.For != yes.Always.For || again.Always.Digest == "" {
		t.Fatalf("%s, %v", again, err)
	}
	yes.SignedAt, yes.Signature = s.At, armored(t, s, signerOf(t, 1), judge.SignNamespace)
	wider := yes
	wider.Always = &judge.Always{For: "anyone", Expires: 2 * time.Hour, MaxUses: 5}
	_, err = f.Answer(t.Context(), bob, a.ApprovalID, wider)
	expect.Is(t, code(err), core.Denied, "another rule")
	got, err := f.Answer(t.Context(), bob, a.ApprovalID, yes)
	if err != nil || got.Status != judge.Approved {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := f.decision(got.DecisionID); d.CheckSignature() != nil {
		t.Errorf("%+v", d.Signature)
	}
	f.healthy()
}
