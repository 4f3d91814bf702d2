// Package keyring holds an operator's own private keys: that of a file, and
// those that ssh-agent keeps. They never leave the machine that the operator
// sits at.
package keyring

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/term"
)

// Ring is the keys at hand. Close it.
type Ring struct {
	signers []ssh.Signer
	conn    net.Conn // to the agent; nil without one
}

// touch is how long a key may take that wants to be touched.
const touch = 2 * time.Minute

// maxKey bounds a file with a private key.
const maxKey = 64 << 10

// Open reads the private key of a file, unless it is "", and asks the agent that
// listens at a socket, unless that is "". An agent that does not answer has no keys.
func Open(file, socket string) (*Ring, error) {
	r := &Ring{}
	if file != "" {
		signer, err := read(file)
		if err != nil {
			return nil, err
		}
		r.signers = append(r.signers, signer)
		return r, nil
	}
	if socket == "" {
		return r, nil
	}
	conn, err := net.DialTimeout("unix", socket, 2*time.Second)
	if err != nil {
		return r, nil
	}
	_ = conn.SetDeadline(time.Now().Add(touch))
	r.conn = conn
	if r.signers, err = agent.NewClient(conn).Signers(); err != nil {
		return nil, errors.Join(core.Errorf(core.Unavailable, "ask ssh-agent for its keys: %v", err), conn.Close())
	}
	return r, nil
}

// Close lets go of the agent.
func (r *Ring) Close() error {
	if r.conn == nil {
		return nil
	}
	return r.conn.Close()
}

func read(file string) (ssh.Signer, error) {
	bad := func(why string) error {
		return core.Errorf(core.InvalidInput, "key: %s: %s", file, why).With("field", "key")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, bad("can't be read: " + core.AsError(err).Message)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil, !info.Mode().IsRegular(), info.Size() > maxKey:
		return nil, bad("is no file with a private key, of at most 64 KiB")
	case info.Mode().Perm()&0o077 != 0:
		return nil, bad("others may read it; chmod 600 it")
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, bad("can't be read: " + err.Error())
	}
	signer, err := ssh.ParsePrivateKey(data)
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		return nil, bad("has a passphrase; add it to ssh-agent (ssh-add) and leave --key out")
	}
	if err != nil {
		return nil, bad("is no private key of OpenSSH")
	}
	return signer, nil
}

// Have are the signers of those of an operator's keys that are in the ring.
func (r *Ring) have(keys []operator.Key) []ssh.Signer {
	return core.Where(r.signers, func(s ssh.Signer) bool {
		print := ssh.FingerprintSHA256(s.PublicKey())
		return slices.ContainsFunc(keys, func(k operator.Key) bool { return k.Fingerprint == print })
	})
}

// Prove shows that one of an operator's keys is at hand, and tells its
// fingerprint: it signs what nobody could know before. NOT_FOUND is that none is.
func (r *Ring) Prove(keys []operator.Key) (fingerprint string, err error) {
	challenge := make([]byte, 32)
	if _, err := rand.Read(challenge); err != nil {
		return "", fmt.Errorf("make a challenge: %w", err)
	}
	challenge = append([]byte("swarmdeck: who is there? "), challenge...)
	err = core.Errorf(core.NotFound, "none of their keys is at hand")
	for _, s := range r.have(keys) {
		sig, failed := s.Sign(rand.Reader, challenge)
		if failed == nil {
			failed = s.PublicKey().Verify(challenge, sig)
		}
		if failed == nil {
			return ssh.FingerprintSHA256(s.PublicKey()), nil
		}
		err = core.Errorf(core.Unavailable, "key %s does not sign: %v", ssh.FingerprintSHA256(s.PublicKey()), failed)
	}
	return "", err
}

// Sign signs a text in a namespace with the first of an operator's keys that is at
// hand and does (PROTOCOL.sshsig of OpenSSH). The signature is armored.
func (r *Ring) Sign(namespace, text string, keys []operator.Key) (armored []byte, err error) {
	err = core.Errorf(core.NotFound, "none of your keys is at hand to sign with: give one with --key FILE, or add it to ssh-agent").With("field", "signature")
	for _, s := range r.have(keys) {
		sig, failed := sshsig.Sign(strings.NewReader(text), s, sshsig.HashSHA512, namespace)
		if failed == nil {
			return sshsig.Armor(sig), nil
		}
		err = core.Errorf(core.Unavailable, "key %s does not sign: %v", ssh.FingerprintSHA256(s.PublicKey()), failed)
	}
	return nil, err
}

// SignerPrefix begins the name of the socket by which a machine asks the one that
// its operator sits at for a signature, as in "ssh -R /tmp/swarmdeck-signer-…:…".
const SignerPrefix = "swarmdeck-signer-"

// SignerVariable names that socket to a program that an sshd started.
const SignerVariable = "SWARMDECK_SIGNER"

// Confirming is how long somebody may look at what they are to sign.
const Confirming = 2 * time.Minute

// asking is how long a request may take to come.
const asking = 10 * time.Second

// maxAsked bounds a request and its reply, in bytes.
const maxAsked = 64 << 10

// request is what the other machine wants signed, and reply what it gets: one line of
// JSON each. A connection has one of both.
type request struct {
	Statement string   `json:"statement"`
	Keys      []string `json:"keys"` // fingerprints of those that may sign
}

type reply struct {
	Signature string `json:"signature,omitempty"` // SSHSIG, armored
	Error     string `json:"error,omitempty"`
}

// Ask has a statement of an answer signed by who sits at the other end of a
// connection, which it closes.
func Ask(conn io.ReadWriteCloser, statement string, keys []operator.Key) (armored []byte, err error) {
	defer conn.Close()
	defer time.AfterFunc(Confirming+touch, func() { _ = conn.Close() }).Stop()
	asked := request{Statement: statement, Keys: core.Map(keys, func(k operator.Key) string { return k.Fingerprint })}
	var got reply
	_, err = conn.Write(append(core.MustEncode(asked), '\n'))
	if err == nil {
		err = readLine(conn, &got)
	}
	switch {
	case err != nil:
		return nil, core.Errorf(core.Unavailable, "signature: the machine that you sit at gave none: %v", err).With("field", "signature")
	case got.Signature == "":
		why := term.Clean(core.ClipTo(cmp.Or(got.Error, "no reason given"), 240))
		return nil, core.Errorf(core.Denied, "signature: not signed at the machine that you sit at: %s", why).With("field", "signature")
	}
	return []byte(got.Signature), nil
}

// ErrUnsure is why sure does not want a statement signed.
var ErrUnsure = errors.New("you said no, or nothing")

// Sure shows a statement and asks whether to sign it; signed is called once that is
// done. Its context ends when the other machine no longer waits.
type Sure func(ctx context.Context, s judge.Statement) (signed func(), err error)

// Answer takes one request from another machine, and signs when sure has no error.
// Nothing is signed but a statement of an answer, in that namespace. It closes conn.
func Answer(ctx context.Context, conn net.Conn, open func() (*Ring, error), sure Sure) error {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	defer conn.Close()
	signature, err := answer(ctx, gone, conn, open, sure)
	said := reply{Signature: string(signature)}
	if err != nil {
		said.Error = core.AsError(err).Message
	}
	_, failed := conn.Write(append(core.MustEncode(said), '\n'))
	return errors.Join(err, failed)
}

func answer(ctx context.Context, gone func(), conn net.Conn, open func() (*Ring, error), sure Sure) ([]byte, error) {
	var asked request
	_ = conn.SetReadDeadline(time.Now().Add(asking))
	if err := readLine(conn, &asked); err != nil {
		return nil, err
	}
	s, err := judge.ParseStatement([]byte(asked.Statement))
	if err != nil {
		return nil, err
	}
	keys := core.Map(asked.Keys, func(print string) operator.Key { return operator.Key{Fingerprint: print} })
	ring, err := open()
	if err != nil {
		return nil, err
	}
	defer ring.Close()
	if len(ring.have(keys)) == 0 {
		return nil, core.Errorf(core.NotFound, "no key of %s is there: give one with --key FILE, or add it to ssh-agent", s.Operator)
	}
	_ = conn.SetReadDeadline(time.Time{})
	go func() { // ends when conn is closed, by either end
		_, _ = conn.Read(make([]byte, 1))
		gone()
	}()
	signed, err := sure(ctx, s)
	if err != nil {
		return nil, err
	}
	defer signed()
	return ring.Sign(judge.SignNamespace, asked.Statement, keys)
}

// readLine reads one line of JSON.
func readLine(from io.Reader, into any) error {
	line, err := bufio.NewReader(io.LimitReader(from, maxAsked)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return core.Errorf(core.InvalidInput, "not one line of at most %d KiB", maxAsked>>10)
	}
	if err != nil {
		return err
	}
	return core.Decode(line, into)
}

// Forget removes the socket that an sshd made for this program to ask by; it leaves
// them behind.
func Forget(getenv func(string) string) {
	if at := getenv(SignerVariable); strings.HasPrefix(filepath.Base(at), SignerPrefix) {
		_ = os.Remove(at)
	}
}
