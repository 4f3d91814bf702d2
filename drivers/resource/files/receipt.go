package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// receipt says what was taken under an id. It is written last: a snapshot that
// has one is whole and on disk.
type receipt struct {
	Tree  string   `json:"tree"` // sha256 of the manifest, hex
	Bytes int64    `json:"bytes"`
	Files int      `json:"files"`
	Notes []string `json:"notes,omitempty"`
}

var idPattern = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// checkID refuses ids that are no names of files.
func checkID(id string) error {
	if !idPattern().MatchString(id) {
		return core.Invalid("id", id, "1-128 letters, digits, _, - and ., the first a letter or digit")
	}
	return nil
}

// receipt reads what was taken under an id; fs.ErrNotExist when nothing was.
func (s *store) receipt(id string) (receipt, error) {
	var r receipt
	data, err := os.ReadFile(filepath.Join(s.dir, "taken", id))
	if err != nil {
		return r, err
	}
	if err := core.DecodeStored(data, &r); err != nil {
		return r, fmt.Errorf("read what was taken under %s: %w", id, err)
	}
	return r, nil
}

// keep writes the manifest, and then the receipt; nothing when it is the one
// that was taken last.
func (s *store) keep(id string, all []entry, r receipt, last *dag.ExtRef) (receipt, error) {
	data := encode(all)
	sum := digest(sha256.Sum256(data))
	r.Tree, r.Files = sum.String(), len(all)
	_, err := os.Lstat(s.treePath(sum))
	if err == nil && last != nil && last.ID == "sha256:"+r.Tree {
		return r, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.write(s.treePath(sum), data); err != nil {
			return r, err
		}
	} else if err != nil {
		return r, err
	}
	return r, s.write(filepath.Join(s.dir, "taken", id), core.MustEncode(r))
}

func parseDigest(text string) (d digest, err error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "sha256:"))
	if err != nil || len(raw) != len(d) {
		return d, core.Invalid("snapshot", text, "sha256: and 64 hex digits")
	}
	return digest(raw), nil
}

// seenFile is a file as it was when it was read last: one that has not changed
// since has the same content.
type seenFile struct {
	dev, ino   uint64
	size       int64
	mtim, ctim int64
	sum        digest
}

// settled is how much older than its reading a file's newest change must be:
// a change within the clock's grain could not be told from none.
const settled = int64(2e9)

// seen is what is known of a tree's files from the snapshot before.
type seen map[string]seenFile

func seenKey(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:16])
}

// recall reads what was seen of a tree; nothing when that is damaged: then
// all is read again.
func (s *store) recall(root string) seen {
	data, err := os.ReadFile(filepath.Join(s.dir, "seen", seenKey(root)))
	if err != nil || len(data) < 32 {
		return nil
	}
	body, sum := data[:len(data)-32], data[len(data)-32:]
	if sha256.Sum256(body) != [32]byte(sum) {
		return nil
	}
	return decodeSeen(body)
}

// remember keeps what was seen; without it the next snapshot only costs more.
func (s *store) remember(root string, all []entry, stats []unix.Stat_t, began int64) {
	body := encodeSeen(all, stats, began)
	sum := sha256.Sum256(body)
	path := filepath.Join(s.dir, "seen", seenKey(root))
	tmp := filepath.Join(s.dir, "tmp", "seen-"+seenKey(root))
	if os.WriteFile(tmp, append(body, sum[:]...), 0o600) == nil {
		_ = os.Rename(tmp, path)
	}
}
