// Package keyring holds an operator's own private keys: that of a file, and
// those that ssh-agent keeps. They never leave the machine that the operator
// sits at.
package keyring

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
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
