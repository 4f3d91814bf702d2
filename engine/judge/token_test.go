package judge_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// token is what a FIDO security key does, as PROTOCOL.u2f of OpenSSH writes it down.
type token struct {
	key     ed25519.PrivateKey
	touched bool
}

const application = "ssh:"

func (k token) PublicKey() ssh.PublicKey {
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, k.key.Public().(ed25519.PublicKey), application}))
	if err != nil {
		panic(err)
	}
	return key
}

func (k token) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	said := []byte{0, 0, 0, 0, 7} // flags and a counter
	if k.touched {
		said[0] = 1
	}
	of, what := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	return &ssh.Signature{
		Format: ssh.KeyAlgoSKED25519, Rest: said,
		Blob: ed25519.Sign(k.key, bytes.Join([][]byte{of[:], said, what[:]}, nil)),
	}, nil
}

// one is a single person with a token.
type one struct {
	crew
	print string
}

func (o one) Whose(_, print string) (name string, since time.Time) {
	if print == o.print {
		name = "bob"
	}
	return name, since
}

func TestATokenThatSomebodyTouchedProvesThatAPersonWasThere(t *testing.T) {
	seed := bytes.Repeat([]byte{9}, ed25519.SeedSize)
	k := token{ed25519.NewKeyFromSeed(seed), false}
	f := setup(t, func(o *judge.Options) { o.People = one{print: ssh.FingerprintSHA256(k.PublicKey())} })
	expect.Of(f.SetTerms(t.Context(), alice, judge.PolicyTerms{Sign: judge.SignAll}))(t)
	a := f.opened(execBy(robot, `{"argv":["rm","-rf","x"]}`))
	yes := judge.Answer{Approve: true, Reason: "agreed"}
	s, _, err := f.Statement(t.Context(), bob, a.ApprovalID, yes)
	expect.No(t, err)
	yes.SignedAt, yes.Signature = s.At, armored(t, s, k, judge.SignNamespace)
	if _, err := f.Answer(t.Context(), bob, a.ApprovalID, yes); code(err) != core.Denied || !strings.Contains(err.Error(), "user presence") {
		t.Fatalf("untouched: %v", err)
	}
	k.touched = true
	yes.Signature = armored(t, s, k, judge.SignNamespace)
	got, err := f.Answer(t.Context(), bob, a.ApprovalID, yes)
	if err != nil || got.Status != judge.Approved {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := f.decision(got.DecisionID); d.Signature == nil || !d.Signature.Touched || d.CheckSignature() != nil {
		t.Errorf("%+v", d.Signature)
	}
	f.healthy()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed (openssh-client)")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sig": string(yes.Signature), "signers": fmt.Sprintf("bob namespaces=%q %s", judge.SignNamespace, ssh.MarshalAuthorizedKey(k.PublicKey())),
	} {
		expect.No(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	check := exec.Command("ssh-keygen", "-Y", "verify", "-n", judge.SignNamespace, "-f", filepath.Join(dir, "signers"), "-I", "bob", "-s", filepath.Join(dir, "sig"))
	check.Stdin = strings.NewReader(s.String())
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
