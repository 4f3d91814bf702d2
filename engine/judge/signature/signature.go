// Package signature checks the signatures that ssh-keygen makes of a text
// (PROTOCOL.sshsig of OpenSSH).
package signature

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Namespace is that of the signatures of answers: what a key signs here is good for
// nothing else, and nothing else is good here.
const Namespace = "swarmdeck"

// most bounds an armored signature, in bytes.
const most = 16 << 10

// Key is a key that signed.
type Key struct {
	Line        string // as in authorized_keys
	Fingerprint string // SHA256:…
	Touched     bool   // it lies in a token that tells that somebody touched it (PROTOCOL.u2f)
}

// Verify checks an armored signature of a text, and tells its key. One of a token that
// nobody touched is none: the library refuses it, as sshd does.
func Verify(text, armored []byte) (k Key, err error) {
	if len(armored) > most {
		return k, fmt.Errorf("it is longer than %d bytes", most)
	}
	sig, err := sshsig.Unarmor(bytes.TrimSpace(armored))
	if err != nil {
		return k, fmt.Errorf("it is no signature of ssh-keygen: %w", err)
	}
	if err := sshsig.Verify(bytes.NewReader(text), sig, sig.PublicKey, sig.HashAlgorithm, Namespace); err != nil {
		return k, err
	}
	kind := sig.PublicKey.Type()
	return Key{
		strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sig.PublicKey))), ssh.FingerprintSHA256(sig.PublicKey),
		kind == ssh.KeyAlgoSKED25519 || kind == ssh.KeyAlgoSKECDSA256,
	}, nil
}

// Principal is a name as an ALLOWED SIGNERS file (ssh-keygen(1)) takes it, where
// blanks, commas and patterns mean something.
func Principal(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ,*?!\"#\t", r) {
			return '_'
		}
		return r
	}, name)
}
