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
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bound"
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
	Name      string    `json:"name" allow:"none or 1-40 of a-z 0-9 -, beginning with a letter or digit"`
	Kind      string    `json:"kind" allow:"file, git, command"`
	Path      string    `json:"path,omitempty"` // absolute, of a file or a git repository
	Command   []string  `json:"command,omitempty"`
	EveryS    int       `json:"every_s" allow:"1s-24h"` // at most one in so many
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// Limits of a witness.
const (
	DefaultEvery = 60 // seconds
	maxPath      = 4096
	maxWitnesses = 20 // of a tenant
)

// Check reports the first bad field and fills in the defaults. A name may be
// left out.
func (w *Witness) Check() error {
	w.EveryS = cmp.Or(w.EveryS, DefaultEvery)
	if err := bound.Check(w); err != nil {
		return err
	}
	if w.Kind != Command {
		if len(w.Command) > 0 || !filepath.IsAbs(w.Path) || len(w.Path) > maxPath || strings.ContainsRune(w.Path, 0) {
			return core.Invalid("path", w.Path, fmt.Sprintf("an absolute path of at most %d bytes", maxPath))
		}
		w.Path = filepath.Clean(w.Path)
		return nil
	}
	if w.Path != "" {
		return core.Invalid("path", w.Path, "none beside a command")
	}
	return bound.Command("command", w.Command)
}

// sameTarget says whether two witnesses publish to the same place.
func (w *Witness) sameTarget(o *Witness) bool {
	return w.Kind == o.Kind && w.Path == o.Path && slices.Equal(w.Command, o.Command)
}
