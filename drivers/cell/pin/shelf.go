package pin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Bounds of what is kept of each tenant's files, so that a person who is asked
// can read them. The oldest go first.
const (
	maxKept    = 256 << 10 // bytes of one version
	maxShelf   = 64 << 20  // bytes of all
	maxEntries = 4096
)

// shelf is what is kept for one tenant: files named by their digest.
type shelf struct {
	dir   string
	bytes int64
	count int
}

// shelf is called with k.mu held.
func (k *Keeper) shelf(tenant string) (*shelf, error) {
	if s := k.kept[tenant]; s != nil {
		return s, nil
	}
	s := &shelf{dir: filepath.Join(k.dir, "seen", tenant)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			s.bytes, s.count = s.bytes+info.Size(), s.count+1
		}
	}
	k.kept[tenant] = s
	return s, nil
}

// Keep stores a text for whoever is asked about it, and returns its digest. A nil
// keeper keeps nothing.
func (k *Keeper) Keep(tenant string, text []byte) string {
	sha := sum(text)
	if k != nil {
		k.keep(tenant, sha, text)
	}
	return sha
}

// keep stores a version of a file that is text. That it can't is no reason not
// to ask: the card says that it has no text.
func (k *Keeper) keep(tenant, sha string, data []byte) {
	if len(data) > maxKept || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return
	}
	k.put(tenant, sha, data)
}

func (k *Keeper) put(tenant, name string, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, err := k.shelf(tenant)
	if err != nil {
		return
	}
	path := filepath.Join(s.dir, name)
	now := time.Now()
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		_ = os.Chtimes(path, now, now)
		return
	}
	tmp, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return
	}
	s.bytes, s.count = s.bytes+int64(len(data)), s.count+1
	if s.bytes > maxShelf || s.count > maxEntries {
		s.prune()
	}
}

// prune removes the oldest until there is room for a while.
func (s *shelf) prune() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	type entry struct {
		name string
		size int64
		at   time.Time
	}
	var list []entry
	s.bytes, s.count = 0, 0
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			list = append(list, entry{e.Name(), info.Size(), info.ModTime()})
			s.bytes, s.count = s.bytes+info.Size(), s.count+1
		}
	}
	core.Sort(list, func(a, b entry) int { return a.at.Compare(b.at) })
	for _, e := range list {
		if s.bytes <= maxShelf*3/4 && s.count <= maxEntries*3/4 {
			return
		}
		if os.Remove(filepath.Join(s.dir, e.name)) == nil {
			s.bytes, s.count = s.bytes-e.size, s.count-1
		}
	}
}

func (k *Keeper) Content(tenant, sha string) ([]byte, bool) {
	if k == nil || strings.ContainsAny(sha, "/.") || strings.ContainsAny(tenant, "/.") {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(k.dir, "seen", tenant, sha))
	if err != nil || sum(data) != sha {
		return nil, false
	}
	return data, true
}
