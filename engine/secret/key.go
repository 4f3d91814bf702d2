package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"filippo.io/age"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// keyring holds the one key that values are encrypted to. It is read when it
// is first needed and made with the first secret.
type keyring struct {
	path string

	mu  sync.Mutex
	key *age.X25519Identity
}

var errNoKey = errors.New("there is no key file")

// get reads the key; a missing file is errNoKey.
func (k *keyring) get() (*age.X25519Identity, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read()
}

// getOrMake reads the key or makes it.
func (k *keyring) getOrMake() (*age.X25519Identity, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, err := k.read()
	if !errors.Is(err, errNoKey) || k.path == "" {
		return key, err
	}
	if err := makeKey(k.path); err != nil {
		return nil, unusable(k.path, err)
	}
	return k.read()
}

func (k *keyring) read() (*age.X25519Identity, error) {
	if k.key != nil {
		return k.key, nil
	}
	key, err := readKey(k.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoKey
	case err != nil:
		return nil, unusable(k.path, err)
	}
	k.key = key
	return key, nil
}

func unusable(path string, err error) error {
	return core.Errorf(core.Unavailable, "the key of the secrets, %s: %v", path, err)
}

// readKey reads a key file that only its owner can use.
func readKey(path string) (*age.X25519Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("not a regular file (%s)", info.Mode())
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others can use it (mode %#o); run: chmod 600 %s", info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return nil, err
	}
	key, err := age.ParseX25519Identity(strings.TrimSpace(string(text)))
	if err != nil { // which repeats the key
		return nil, errors.New("not a key of the form AGE-SECRET-KEY-1…")
	}
	return key, nil
}

// makeKey writes a new key. It is on disk before it is used, and it never
// replaces one that another process made meanwhile.
func makeKey(path string) error {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".key-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(key.String() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return safeopen.SyncDir(dir)
}

// seal encrypts the value of a secret. Whose it is goes in with it, so that
// none can be put in another's place.
func seal(key *age.X25519Identity, tenant, name string, value []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, key.Recipient())
	if err == nil {
		_, err = w.Write(append(owner(tenant, name), value...))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt secret %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// open decrypts a value.
func open(key *age.X25519Identity, s *stored) (string, error) {
	foreign := core.Errorf(core.Unavailable, "secret %s can't be opened: it was sealed with another key or changed; set it again", s.Name)
	r, err := age.Decrypt(bytes.NewReader(s.Sealed), key)
	if err != nil {
		return "", foreign
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSealed))
	value, ours := bytes.CutPrefix(text, owner(s.TenantID, s.Name))
	if err != nil || !ours {
		return "", foreign
	}
	return string(value), nil
}

func owner(tenant, name string) []byte { return []byte(tenant + "\x00" + name + "\x00") }
