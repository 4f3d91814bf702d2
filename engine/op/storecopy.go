package op

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
	"swarmdeck/store/transfer"
)

// Copied is a tenant that was copied to another store.
type Copied struct {
	TenantID string `json:"tenant_id"`
	From     string `json:"from"`
	To       string `json:"to"`
	Kept     bool   `json:"kept"` // it is a snapshot: the tenant goes on where it was
	transfer.Counts
	engine.Proved
	With []string `json:"with,omitempty"` // what lies beside the store and was copied
	Left []string `json:"left,omitempty"` // what was not
}

// String tells it.
func (c Copied) String() string {
	how := "copied %s from %s to %s: a snapshot as of event %d. The tenant goes on where it was; work on one of the two alone"
	text := fmt.Sprintf(how, c.TenantID, c.From, c.To, c.Events)
	text += fmt.Sprintf("\n  %d records, %s; the log verifies and reconciles there, root %s", c.Records, Size(c.Bytes), c.RootHash)
	for _, path := range c.With {
		text += "\n  with " + path
	}
	for _, path := range c.Left {
		text += "\n  not with it: " + path
	}
	return text
}

func storeCopy() *Op {
	var to string
	var keep bool
	return define(Op{
		Name: "store copy", Short: "Copy a tenant, as it is at one moment, to another data file or database", Effect: Reads, Role: Admin, Alone: true,
		Long: "Copy the tenant that --tenant names, as it is at one moment, to another data file or PostgreSQL database, while work on it\n" +
			"goes on. The copy takes the place of the tenant there only once its log was verified from the first event on and replayed\n" +
			"to the records that are there. What a copy that was cut off left is removed by the next try. Beside the records go the\n" +
			"signing key, the key of the secrets, outputs that are in files of their own and texts that were approved.",
		Example: "store copy --to ../other.db --keep\nstore copy --to postgres://swarm@db.example/swarm --keep",
		Params: []*Param{
			need(&to, "to", "the other store: `FILE`, or a database as postgres://USER@HOST/DATABASE"),
			flag(&keep, "keep", "the tenant stays where it is, and the copy is a snapshot"),
		},
		Check: func(*Call) error {
			if !keep {
				return usage("keep", "store copy: say --keep: the copy is a snapshot, and the tenant stays where it is")
			}
			return nil
		},
	}, func(ctx context.Context, c *Call) (Copied, error) {
		if err := c.Open(true); err != nil {
			return Copied{}, err
		}
		return c.copyTenant(ctx, to)
	})
}

// copying is one copy on its way.
type copying struct {
	c    *Call
	from store.Store
	to   *transfer.Place
	made Copied
	told time.Time
}

func (c *Call) copyTenant(ctx context.Context, dest string) (Copied, error) {
	to, err := c.place(ctx, dest)
	if err != nil {
		return Copied{}, err
	}
	defer to.Close()
	w := &copying{c: c, from: c.Store(), to: to}
	w.made = Copied{TenantID: c.By.Tenant, From: nameOf(c.Store()), To: to.Name, Kept: true}
	mark := store.AwayError{Tenant: c.By.Tenant, Copy: rand.Text()[:12], Place: w.made.From}
	w.made.Counts, err = transfer.Copy(ctx, w.from, to, mark, transfer.Options{Records: w.progress, Beside: w.beside, Prove: w.prove})
	if err != nil {
		return Copied{}, w.failed(err)
	}
	return w.made, to.Close()
}

// nameOf is the name of a store for people.
func nameOf(st store.Store) string {
	if named, ok := st.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "this store"
}

// place opens what a tenant is to be copied to.
func (c *Call) place(ctx context.Context, dest string) (*transfer.Place, error) {
	say := func(code core.Code, format string, args ...any) error {
		return core.Errorf(code, "--to: "+format, args...).With("field", "to")
	}
	path, database, err := c.Stands(dest)
	if err != nil {
		return nil, err
	}
	to, err := transfer.Open(ctx, path, database)
	var by store.LockedError
	switch {
	case err == nil:
		return to, nil
	case errors.As(err, &by) && by.PID == os.Getpid():
		return nil, say(core.Conflict, "this is the store that the tenant is in")
	case errors.As(err, &by) && by.PID > 0:
		return nil, say(core.Conflict, "process %d has it open; end that first", by.PID)
	case errors.Is(err, fs.ErrPermission):
		return nil, FileFault("write", "to", dest, err)
	}
	return nil, fmt.Errorf("--to: %w", err)
}

// failed says what kept a copy from being made.
func (w *copying) failed(err error) error {
	switch {
	case errors.Is(err, store.ErrTenantExists):
		return core.Errorf(core.Conflict, "--to: %s has a tenant %s already", w.to.Name, w.c.By.Tenant).With("field", "to")
	case core.AsError(err).Code != core.Internal:
		return err
	}
	return fmt.Errorf("copy %s to %s: %w", w.c.By.Tenant, w.to.Name, err)
}

// progress tells every two seconds how far it is.
func (w *copying) progress(n transfer.Counts) {
	if now := time.Now(); now.Sub(w.told) >= 2*time.Second {
		if !w.told.IsZero() {
			w.c.Progress(fmt.Sprintf("%d records, %s …", n.Records, Size(n.Bytes)))
		}
		w.told = now
	}
}

func (w *copying) prove(ctx context.Context, moment store.Tx, copied store.Store) (err error) {
	w.c.Progress("verifying the log and replaying it …")
	w.made.Proved, err = w.c.Prove(ctx, moment, copied, w.to.Path+".spill")
	return err
}

// beside copies what belongs to the tenant and lies beside the store.
func (w *copying) beside(ctx context.Context) error {
	at, to := w.c.Places(), w.to.Path
	w.made.With, w.made.Left = nil, nil
	if at.Key != "" {
		if err := w.key(at.Key, to+".key"); err != nil {
			return err
		}
	}
	if err := w.secretsKey(ctx, at.SecretKey, to+".secrets.key"); err != nil {
		return err
	}
	for _, dir := range []string{w.c.By.Tenant, filepath.Join("approved", "seen", w.c.By.Tenant)} {
		if err := copyTree(ctx, filepath.Join(at.Spill, dir), filepath.Join(to+".spill", dir)); err != nil {
			return err
		}
		w.with(filepath.Join(to+".spill", dir))
	}
	base := strings.TrimSuffix(at.SecretKey, ".secrets.key")
	for _, stays := range [][2]string{
		{".homes", "homes of local agents"},
		{".agents", "sessions of local agents"},
		{".terminals", "homes of agents in terminals"},
		{".servers", "homes of MCP servers"},
		{".snapshots", "what agents work on, as it was before a call"},
		{".trees", "work trees and forks"},
		{".cad", "files of CAD workspaces"},
		{".workspaces", "what is known of Coder workspaces"},
		{".cells", "what runs left when an engine died"},
	} {
		if _, err := os.Lstat(base + stays[0]); err == nil && base != at.SecretKey {
			w.made.Left = append(w.made.Left, base+stays[0]+" ("+stays[1]+")")
		}
	}
	return nil
}

// with notes what was copied.
func (w *copying) with(path string) {
	if _, err := os.Lstat(path); err == nil {
		w.made.With = append(w.made.With, path)
	}
}

// key copies the signing key. A store whose log another key signs takes no tenant: its
// log would name a key for ever that none before it signed.
func (w *copying) key(from, to string) error {
	same, err := audit.Succeeds(from, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := copyFile(from, to); err != nil {
			return err
		}
	case err != nil:
		return err
	case !same:
		return core.Errorf(core.Conflict, "--to: the logs there are signed with another key, %s; copy the tenant to a store of its own", to).With("field", "to")
	}
	w.with(to)
	return nil
}

// secretsKey copies the key of the secrets.
func (w *copying) secretsKey(ctx context.Context, from, to string) error {
	has, err := w.c.Secrets.List(ctx, w.c.By.Tenant)
	if err != nil || len(has) == 0 {
		return err
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	a, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("the key of the secrets: %w", err)
	}
	b, err := os.ReadFile(to)
	if err != nil {
		return fmt.Errorf("the key of the secrets: %w", err)
	}
	if string(a) != string(b) {
		return core.Errorf(core.Conflict, "--to: the secrets there have another key, %s, than the %d of this tenant; delete these first, and set them there", to, len(has)).With("field", "to")
	}
	w.with(to)
	return nil
}
