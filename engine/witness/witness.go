// Package witness publishes the signed checkpoints of the audit log elsewhere,
// by itself: to a file, a git repository or a command. What somebody else holds
// shows a log that was rewritten, or put back to an earlier state with
// everything beside it, which nothing in the data file can.
//
// A checkpoint is published at least once, the newest at most every so often:
// those between are left out, because it vouches for all before it. Publishing
// blocks no commit. What could not be published is tried again with pauses.
package witness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Where a witness keeps checkpoints.
const (
	File    = "file"    // a line for each, appended
	Git     = "git"     // a commit for each
	Command = "command" // gets a line on stdin; what it does with it is not known
)

// Witness says where the checkpoints of a log are published.
type Witness struct {
	TenantID  string    `json:"tenant_id"`
	Name      string    `json:"name"` // 1-40 of a-z 0-9 -
	Kind      string    `json:"kind"`
	Path      string    `json:"path,omitempty"` // absolute, of a file or a git repository
	Command   []string  `json:"command,omitempty"`
	EveryS    int       `json:"every_s"` // at most one in so many seconds, 1-86400
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// Limits of a witness.
const (
	DefaultEvery = 60 // seconds
	maxEvery     = 24 * 60 * 60
	maxPath      = 4096
	maxWords     = 64
	maxWord      = 4096
	maxWitnesses = 20 // of a tenant
)

var namePattern = core.Pattern(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Check reports the first bad field and fills in the defaults. A name may be
// left out.
func (w *Witness) Check() error {
	if w.Name != "" && !namePattern().MatchString(w.Name) {
		return core.Invalid("name", w.Name, "1-40 of a-z 0-9 -, beginning with a letter or digit")
	}
	if w.EveryS == 0 {
		w.EveryS = DefaultEvery
	}
	if w.EveryS < 1 || w.EveryS > maxEvery {
		return core.Invalid("every", w.EveryS, fmt.Sprintf("1-%d seconds", maxEvery))
	}
	switch w.Kind {
	case File, Git:
		if len(w.Command) > 0 || !filepath.IsAbs(w.Path) || len(w.Path) > maxPath || strings.ContainsRune(w.Path, 0) {
			return core.Invalid("path", w.Path, fmt.Sprintf("an absolute path of at most %d bytes", maxPath))
		}
		w.Path = filepath.Clean(w.Path)
		return nil
	case Command:
	default:
		return core.Invalid("kind", w.Kind, "file, git, command")
	}
	if w.Path != "" || len(w.Command) < 1 || len(w.Command) > maxWords {
		return core.Invalid("command", len(w.Command), fmt.Sprintf("a program and its arguments, at most %d words", maxWords))
	}
	for i, word := range w.Command {
		if i == 0 && word == "" || len(word) > maxWord || strings.ContainsRune(word, 0) {
			return core.Invalid("command", word, fmt.Sprintf("a program and its arguments, each of at most %d bytes and without a zero byte", maxWord))
		}
	}
	return nil
}

// sameTarget says whether two witnesses publish to the same place.
func (w *Witness) sameTarget(o *Witness) bool {
	return w.Kind == o.Kind && w.Path == o.Path && slices.Equal(w.Command, o.Command)
}
