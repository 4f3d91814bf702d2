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
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
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

const standings record.Rows[Standing] = "witness.standing" // by name

// Driver carries checkpoints to witnesses and reads back what they hold.
type Driver interface {
	// Publish has w keep a checkpoint. When it returns nil, w does.
	Publish(ctx context.Context, w Witness, l Line) error
	// Held are the checkpoints that a file or git witness holds, of this log and
	// perhaps of others. Bounded, whoever wrote them.
	Held(ctx context.Context, w Witness) iter.Seq2[audit.Kept, error]
}

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Driver  Driver // nil publishes and reads nothing
	Tenants func(context.Context) ([]string, error)
	// Watch returns a one-slot bell that rings when something changed, closed
	// when the context ends.
	Watch  func(context.Context) <-chan struct{}
	Health *health.Troubles
}

// Witnesses keeps the witnesses of every tenant and, while Run does, publishes.
// It is safe for concurrent use.
type Witnesses struct {
	opt    Options
	ledger *audit.Ledger
	kind   record.Table[Witness]
	crew   loop.Crew[Witness]
}

// New makes the service; Run publishes.
func New(opt Options) *Witnesses {
	s := &Witnesses{opt: opt, ledger: opt.Ledger}
	s.kind = &record.Kind[*Witness]{
		Noun: "witness", Bucket: "witness", Limit: maxWitnesses, Ledger: opt.Ledger, Follow: s.crew.Follow,
		ID:    func(w *Witness) string { return w.Name },
		Whole: true,
	}
	s.crew = loop.Crew[Witness]{
		Component: "witnesses", Kind: s.kind, Health: opt.Health, Tenants: opt.Tenants,
		Changed: make(chan struct{}, 1),
	}
	if opt.Driver != nil {
		s.crew.Work = func(ctx context.Context, w *Witness) error { return s.publisher(*w).run(ctx) }
	}
	opt.Ledger.Register(s.kind.Auditable())
	// An event for each checkpoint that was published would make a next one.
	opt.Ledger.Declare(audit.Volatile, string(standings))
	return s
}

// Run publishes what there is to publish until ctx ends.
func (s *Witnesses) Run(ctx context.Context) error { return s.crew.Run(ctx) }

// Standing is how publishing goes.
type Standing struct {
	Published   int64     `json:"published"` // checkpoints
	Size        uint64    `json:"size"`      // events of the newest of them
	PublishedAt time.Time `json:"published_at,omitzero"`
	Failing     bool      `json:"failing,omitzero"`  // the newest try failed
	Attempts    int       `json:"attempts,omitzero"` // failed ones in a row
	NextAt      time.Time `json:"next_at,omitzero"`  // when it is tried again
	LastError   string    `json:"last_error,omitempty"`
	FailedAt    time.Time `json:"failed_at,omitzero"`
}

// Status is a witness with how it goes.
type Status struct {
	Witness
	Standing
	Lag uint64 `json:"lag"` // events since the newest published checkpoint
}

// Add makes a witness as it is given and says what that did: created, changed
// or unchanged. Without a name it is the one that publishes to the same place,
// or gets a name after its kind.
func (s *Witnesses) Add(ctx context.Context, by core.Caller, w Witness) (_ Witness, action string, err error) {
	if err := w.Check(); err != nil {
		return w, "", err
	}
	if err := s.kind.ByOperator(ctx, by, w.Kind); err != nil {
		return w, "", err
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, w.Name)
		if w.Name == "" {
			old, err = nil, s.name(tx, &w)
		}
		if err != nil {
			return err
		}
		if action, err = s.kind.Put(tx, record.Event{}, &w, nil); err != nil {
			return err
		}
		if old != nil && !old.sameTarget(&w) { // the new place holds nothing yet
			return standings.Delete(tx, record.Key(w.Name))
		}
		return nil
	})
	if err != nil {
		return w, "", fmt.Errorf("keep a witness: %w", err)
	}
	return w, action, nil
}

// name gives a witness its name.
func (s *Witnesses) name(tx *audit.Tx, w *Witness) error {
	taken := map[string]bool{}
	err := s.kind.Each(tx, func(o *Witness) error {
		if taken[o.Name] = true; o.sameTarget(w) {
			w.Name = o.Name
		}
		return nil
	})
	for n := 1; err == nil && w.Name == ""; n++ {
		name := w.Kind
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if !taken[name] {
			w.Name = name
		}
	}
	return err
}

// Remove ends a witness. What it holds stays where it is.
func (s *Witnesses) Remove(ctx context.Context, by core.Caller, name string) (gone Witness, err error) {
	if err := s.kind.ByOperator(ctx, by, name); err != nil {
		return gone, err
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Need(tx, name)
		if err != nil {
			return err
		}
		gone = *old
		return errors.Join(s.kind.Remove(tx, record.Event{Type: "witness.removed"}, old), standings.Delete(tx, record.Key(name)))
	})
	return gone, err
}

// List lists a tenant's witnesses by name.
func (s *Witnesses) List(ctx context.Context, tenant string) (all []Status, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		newest := tx.Next() - 1
		return s.kind.Each(tx, func(w *Witness) error {
			st, _, err := standings.Get(tx, record.Key(w.Name))
			all = append(all, Status{Witness: *w, Standing: st, Lag: newest - min(newest, st.Size)})
			return err
		})
	})
	return all, err
}

// Compare holds a tenant's log against what its file and git witnesses hold,
// and takes what it finds into a report of the log.
func (s *Witnesses) Compare(ctx context.Context, tenant string, r *audit.Report) error {
	all, err := s.List(ctx, tenant)
	if err != nil || s.opt.Driver == nil {
		return err
	}
	for _, w := range all {
		if w.Kind == Command || w.Published == 0 {
			continue
		}
		found, err := s.ledger.Compare(ctx, tenant, w.Name, s.opt.Driver.Held(ctx, w.Witness))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			found.Problems = append(found.Problems, "can't be read: "+core.Cut(err.Error(), maxReason))
		} else if found.Newest < w.Size {
			found.Problems = append(found.Problems, fmt.Sprintf("it was cut short: a checkpoint of %d events was published, it holds up to %d", w.Size, found.Newest))
		}
		r.Add(found)
	}
	return nil
}

// CompareFile is Compare with the file of a witness, wherever it came from.
func (s *Witnesses) CompareFile(ctx context.Context, tenant string, name string, held iter.Seq2[audit.Kept, error], r *audit.Report) error {
	found, err := s.ledger.Compare(ctx, tenant, name, held)
	if err == nil && found.Checkpoints == 0 {
		err = core.Errorf(core.InvalidInput, "witness: %s holds no checkpoint of %s", name, audit.Origin(tenant)).With("field", "witness")
	}
	if err == nil {
		r.Add(found)
	}
	return err
}
