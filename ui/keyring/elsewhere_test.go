package keyring_test

import (
	"bytes"
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
	"swarmdeck/ui/keyring"
)

// keyOf is a private key's file, and its public half.
func keyOf(t testing.TB, seed byte) (file string, public ssh.PublicKey) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, signer.PublicKey()
}

// pair is both ends of a socket.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
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
	sure := func(judge.Statement) (func(), error) { return func() {}, nil }
	for name, c := range map[string]struct {
		text string
		keys []ssh.PublicKey
		sure func(judge.Statement) (func(), error)
		want string // in the error; "" is a signature
	}{
		"signed":                  {statement(), []ssh.PublicKey{other, public}, sure, ""},
		"not sure":                {statement(), []ssh.PublicKey{public}, func(judge.Statement) (func(), error) { return nil, keyring.ErrUnsure }, "you said no"},
		"another's key":           {statement(), []ssh.PublicKey{other}, sure, "no key of bob is there"},
		"no key":                  {statement(), nil, sure, "no key of bob is there"},
		"no statement":            {"let me in\n", []ssh.PublicKey{public}, sure, "statement"},
		"words after a statement": {statement() + "rm -rf\n", []ssh.PublicKey{public}, sure, "statement"},
		"more than is read":       {strings.Repeat("x", 70<<10), []ssh.PublicKey{public}, sure, "not one line"},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := pair(t)
			go func() {
				defer there.Close()
				_ = keyring.Answer(there, func() (*keyring.Ring, error) { return keyring.Open(file, "") }, c.sure)
			}()
			keys := make([]operator.Key, len(c.keys))
			for i, k := range c.keys {
				keys[i].Fingerprint = ssh.FingerprintSHA256(k)
			}
			armored, err := keyring.Ask(here, c.text, keys)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s %v", armored, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sig, err := sshsig.Unarmor(armored)
			if err == nil {
				err = sshsig.Verify(strings.NewReader(c.text), sig, public, sshsig.HashSHA512, judge.SignNamespace)
			}
			if err != nil {
				t.Error(err)
			}
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
		if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 400 {
			t.Errorf("%.40q: %.500v", says, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	file, public := keyOf(f, 1)
	f.Add([]byte(core.MustEncode(map[string]any{"statement": statement(), "keys": []string{ssh.FingerprintSHA256(public)}})))
	f.Add([]byte(`{"statement":"","keys":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		shown := ""
		conn := &both{in: strings.NewReader(string(line) + "\n")}
		err := keyring.Answer(conn, func() (*keyring.Ring, error) { return keyring.Open(file, "") }, func(s judge.Statement) (func(), error) {
			shown = s.String()
			return func() {}, nil
		})
		if err == nil && shown == "" {
			t.Errorf("signed what was not shown: %q", line)
		}
	})
}

// both is a connection of which the other end has said all.
type both struct {
	in  io.Reader
	out bytes.Buffer
}

func (b *both) Read(p []byte) (int, error)  { return b.in.Read(p) }
func (b *both) Write(p []byte) (int, error) { return b.out.Write(p) }
