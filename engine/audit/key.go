package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// keyName stands in the key file; the log of each tenant signs under its own
// origin with the same key.
const keyName = "swarmdeck"

// maxKeyFile bounds what is read of a key file: a key and maxLinks rotations.
const maxKeyFile = 256 << 10

// OpenSealer loads the ed25519 signing key at path (0600: one line in the
// PRIVATE+KEY+… form of signed notes, then one for each rotation), or makes it.
// Losing the file loses nothing but the key: a new one is recorded in each log
// as audit.key, and as one that the key before it did not sign.
func OpenSealer(path string) (*Sealer, error) {
	key, links, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			key, links, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit signing key %s: %w", path, err)
	}
	return &Sealer{path: path, key: key, links: links, logs: map[string]*sealed{}}, nil
}

// OpenShared is OpenSealer for logs that other engines go on with too, each with a key
// of its own: none is signed with a key that it does not trust.
func OpenShared(path string) (*Sealer, error) {
	s, err := OpenSealer(path)
	if err == nil {
		s.shared = true
	}
	return s, err
}

// Path is that of the key file.
func (s *Sealer) Path() string { return s.path }

// Succeeds reports whether the key file other has the key of the one at path, or one
// that rotations from it led to: a log that path signs may go on with other. fs.ErrNotExist
// says that there is no other.
func Succeeds(path, other string) (bool, error) {
	key, _, err := readKey(path)
	if err != nil {
		return false, fmt.Errorf("audit signing key %s: %v", path, err)
	}
	now, links, err := readKey(other)
	if err != nil {
		return false, fmt.Errorf("audit signing key %s: %w", other, err)
	}
	return now.Equal(key) || slices.ContainsFunc(links, func(n link) bool { return n.from == publicOf(key) }), nil
}

func readKey(path string) (ed25519.PrivateKey, []link, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("not a regular file (%s)", info.Mode())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, nil, fmt.Errorf("others can use it (mode %#o); run: chmod 600 %s", info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	key, err := parseKey(lines[0])
	if err != nil {
		return nil, nil, err
	}
	links, err := parseLinks(lines[1:], key)
	return key, links, err
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

// newKey makes a key, and its line of the key file.
func newKey() (ed25519.PrivateKey, string, error) {
	line, _, err := note.GenerateKey(rand.Reader, keyName)
	if err != nil {
		return nil, "", err
	}
	key, err := parseKey(line)
	return key, line, err
}

// makeKey writes a new key. It is on disk before it is used, and it never
// replaces one that another process made meanwhile.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	_, line, err := newKey()
	if err != nil {
		return err
	}
	return writeKey(path, keyText(line, nil), func(temp string) error {
		switch err := os.Link(temp, path); {
		case errors.Is(err, fs.ErrExist):
			return nil
		case err != nil: // a file system without hard links
			return os.Rename(temp, path)
		}
		return nil
	})
}

// replaceKey puts a key file in the place of the one that is there, at once.
// What a killed process left on that way is removed: no key in it was in force.
func replaceKey(path, text string) error {
	beside, err := os.ReadDir(filepath.Dir(path))
	for _, e := range beside {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+tempSuffix) {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return writeKey(path, text, func(temp string) error { return os.Rename(temp, path) })
}

// tempSuffix follows the key file's name in those of files on their way. What
// begins with the name of the data file is hidden from cells.
const tempSuffix = ".new-"

// writeKey writes a key file under another name, and moves it once it is on disk.
func writeKey(path, text string, move func(temp string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+tempSuffix+"*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := move(f.Name()); err != nil {
		return err
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
