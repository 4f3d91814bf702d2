package keyring_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/ui/keyring"
)

// keyOf is a private key's file, and its public half.
func keyOf(t testing.TB, seed byte) (file string, public ssh.PublicKey) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	block := expect.Of(ssh.MarshalPrivateKey(private, ""))(t)
	signer := expect.Of(ssh.NewSignerFromKey(private))(t)
	file = filepath.Join(t.TempDir(), "key")
	expect.No(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file, signer.PublicKey()
}

// pair is both ends of a socket.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l := expect.Of(net.Listen("unix", filepath.Join(t.TempDir(), "s")))(t)
	defer l.Close()
	here = expect.Of(net.Dial("unix", l.Addr().String()))(t)
	there = expect.Of(l.Accept())(t)
	return here, there
}

func statement() string {
	s, err := judge.ParseStatement([]byte(`{"answer":"deny","approval_id":"ap_1","digest":"d","log":"swarmdeck/t_acme","operator":"bob","reason":"no","tenant_id":"t_acme","time":"2026-01-02T03:04:05Z","type":"swarmdeck.answer/1"}` + "\n"))
	if err != nil {
		panic(err)
	}
	return s.String()
}

func TestAStatementIsSignedAtTheOtherEnd(t *testing.T) {
	file, public := keyOf(t, 1)
	_, other := keyOf(t, 2)
	sure := func(context.Context, judge.Statement) (func(), error) { return func() {}, nil }
	for name, c := range map[string]struct {
		text string
		keys []ssh.PublicKey
		sure keyring.Sure
		want string // in the error; "" is a signature
	}{
		"signed":                  {statement(), []ssh.PublicKey{other, public}, sure, ""},
		"not sure":                {statement(), []ssh.PublicKey{public}, func(context.Context, judge.Statement) (func(), error) { return nil, keyring.ErrUnsure }, "you said no"},
		"another's key":           {statement(), []ssh.PublicKey{other}, sure, "no key of bob is there"},
		"no key":                  {statement(), nil, sure, "no key of bob is there"},
		"no statement":            {"let me in\n", []ssh.PublicKey{public}, sure, "statement"},
		"words after a statement": {statement() + "rm -rf\n", []ssh.PublicKey{public}, sure, "statement"},
		"more than is read":       {strings.Repeat("x", 70<<10), []ssh.PublicKey{public}, sure, "not one line"},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := pair(t)
			go func() {
				_ = keyring.Answer(t.Context(), there, func() (*keyring.Ring, error) { return keyring.Open(file, "") }, c.sure)
			}()
			keys := make([]operator.Key, len(c.keys))
			for i, k := range c.keys {
				keys[i].Fingerprint = ssh.FingerprintSHA256(k)
			}
			armored, err := keyring.Ask(here, c.text, keys)
			if c.want != "" {
				expect.Says(t, err, c.want, armored)
				return
			}
			expect.No(t, err)
			sig, err := sshsig.Unarmor(armored)
			if err == nil {
				err = sshsig.Verify(strings.NewReader(c.text), sig, public, sshsig.HashSHA512, judge.SignNamespace)
			}
			expect.No(t, err)
		})
	}
}

// TestWhatTheOtherEndSaysIsCleanAndShort has a machine that answers with an escape
// sequence, and one that never ends its line.
func TestWhatTheOtherEndSaysIsCleanAndShort(t *testing.T) {
	for _, says := range []string{`{"error":"\u001b[2Jmine ` + strings.Repeat("now", 900) + `"}` + "\n", strings.Repeat("y", 1<<20), "\n", "null\n", ""} {
		here, there := pair(t)
		go func() {
			defer there.Close()
			_, _ = there.Read(make([]byte, 4<<10))
			_, _ = io.WriteString(there, says)
		}()
		_, err := keyring.Ask(here, statement(), nil)
		expect.True(t, err != nil && !strings.Contains(err.Error(), "\x1b") && len(err.Error()) <= 400, "%.40q: %.500v", says, err)
	}
}

func FuzzAnswer(f *testing.F) {
	file, public := keyOf(f, 1)
	f.Add([]byte(core.MustEncode(map[string]any{"statement": statement(), "keys": []string{ssh.FingerprintSHA256(public)}})))
	f.Add([]byte(`{"statement":"","keys":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		shown := ""
		here, there := net.Pipe()
		go func() {
			defer here.Close()
			_, _ = here.Write(append(line, '\n'))
			_, _ = io.Copy(io.Discard, here)
		}()
		err := keyring.Answer(t.Context(), there, func() (*keyring.Ring, error) { return keyring.Open(file, "") }, func(_ context.Context, s judge.Statement) (func(), error) {
			shown = s.String()
			return func() {}, nil
		})
		expect.True(t, err != nil || shown != "", "signed what was not shown: %q", line)
	})
}

func TestAQuestionEndsWithTheConnectionThatAsks(t *testing.T) {
	file, public := keyOf(t, 1)
	here, there := pair(t)
	asked := make(chan struct{})
	go func() {
		<-asked
		_ = here.Close()
	}()
	go func() {
		_, _ = keyring.Ask(here, statement(), []operator.Key{{Fingerprint: ssh.FingerprintSHA256(public)}})
	}()
	err := keyring.Answer(t.Context(), there, func() (*keyring.Ring, error) { return keyring.Open(file, "") }, func(ctx context.Context, _ judge.Statement) (func(), error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	expect.Err(t, err, context.Canceled)
}
