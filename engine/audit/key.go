package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// keyName stands in the key file; the log of each tenant signs under its own
// origin with the same key.
const keyName = "swarmdeck"

// OpenSealer loads the ed25519 signing key at path (0600, one line in the
// PRIVATE+KEY+… form of signed notes), or makes it. Losing the file loses
// nothing but the key: a new one is recorded in each log as audit.key.
func OpenSealer(path string) (*Sealer, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit signing key %s: %w", path, err)
	}
	return &Sealer{key: key, logs: map[string]*sealed{}}, nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file (%s)", info.Mode())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can use it (mode %#o); run: chmod 600 %s", info.Mode().Perm(), path)
	}
	var text [1024]byte
	n, err := f.Read(text[:])
	if err != nil && n > 0 {
		return nil, err
	}
	return parseKey(strings.TrimSuffix(string(text[:n]), "\n"))
}

func parseKey(line string) (ed25519.PrivateKey, error) {
	const want = "not a key of the form PRIVATE+KEY+" + keyName + "+HASH+KEY; move it away to have a new one made"
	if _, err := note.NewSigner(line); err != nil {
		return nil, errors.New(want)
	}
	parts := strings.SplitN(line, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(raw) != 1+ed25519.SeedSize || parts[2] != keyName {
		return nil, errors.New(want)
	}
	return ed25519.NewKeyFromSeed(raw[1:]), nil
}

// makeKey writes a new key. It is on disk before it is used, and it never
// replaces one that another process made meanwhile.
func makeKey(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	secret, _, err := note.GenerateKey(rand.Reader, keyName)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".key-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	switch err := os.Link(f.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil: // a file system without hard links
		if err := os.Rename(f.Name(), path); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// signerOf is the note signer of one origin, and its verifier key.
func signerOf(key ed25519.PrivateKey, origin string) (note.Signer, string, error) {
	public, _ := key.Public().(ed25519.PublicKey)
	verifier, err := note.NewEd25519VerifierKey(origin, public)
	if err != nil {
		return nil, "", err
	}
	hash, _, _ := strings.Cut(strings.TrimPrefix(verifier, origin+"+"), "+")
	seed := base64.StdEncoding.EncodeToString(append([]byte{1}, key.Seed()...)) // 1: ed25519
	signer, err := note.NewSigner("PRIVATE+KEY+" + origin + "+" + hash + "+" + seed)
	return signer, verifier, err
}
