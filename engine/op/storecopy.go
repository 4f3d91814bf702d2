package op

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
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
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/task"
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

	finished bool // a move that was cut off at its last step
}

// String tells it.
func (c Copied) String() string {
	if c.finished {
		return fmt.Sprintf("%s is at %s: its move is complete", c.TenantID, c.To)
	}
	text := fmt.Sprintf("moved %s from %s to %s, with event %d as its newest", c.TenantID, c.From, c.To, c.Events)
	if c.Kept {
		text = fmt.Sprintf("copied %s from %s to %s: a snapshot as of event %d. The tenant goes on where it was; work on one of the two alone",
			c.TenantID, c.From, c.To, c.Events)
	}
	text += fmt.Sprintf("\n  %d records, %s; the log verifies and reconciles there, root %s", c.Records, face.Size(c.Bytes), c.RootHash)
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
	o := define(Op{
		Name: "store copy", Short: "Move a tenant to another data file or database, or with --keep copy it", Role: Admin, Alone: true, Done: "moved",
		Long: "Move the tenant that --tenant names to another data file or PostgreSQL database, while work on it goes on. What is written\n" +
			"meanwhile is copied too. Then no more tasks are started, those that run are waited for, and the copy is proven: its log\n" +
			"verifies from the first event on, and its replay comes to the records that are there. For the last rows alone updates\n" +
			"wait. From then on the tenant is there, and here it is known where it went. Agents must be stopped before.\n\n" +
			"Ended at any instant, the tenant is where it was, and what came to the other store is removed by the next try; or it is\n" +
			"handed over and takes no work until the same command, run again, has finished that.\n\n" +
			"With --keep the copy is a snapshot, and the tenant stays. Beside the records go the signing key, the key of the secrets,\n" +
			"outputs that are in files of their own and texts that were approved.",
		Example: "store copy --to ../other.db --keep\nstore copy --to postgres://swarm@db.example/swarm",
		Params: []*Param{
			need(&to, "to", "the other store: `FILE`, or a database as postgres://USER@HOST/DATABASE").names(reach.Path),
			flag(&keep, "keep", "the tenant stays where it is, and the copy is a snapshot"),
		},
	}, func(ctx context.Context, c *Call) (Copied, error) {
		err := c.Open(true)
		if away := new(store.AwayError); errors.As(err, &away) && away.Moved && !keep {
			return c.finishMove(ctx, *away, to)
		}
		if err != nil {
			return Copied{}, err
		}
		return c.copyTenant(ctx, to, keep)
	})
	o.Check = func(*Call) error {
		if !keep {
			o.Effect, o.Role = Writes, Admin
		}
		return nil
	}
	return o
}

// copying is one copy on its way.
type copying struct {
	c     *Call
	from  store.Store
	to    *transfer.Place
	made  Copied
	told  time.Time
	again func() // lets tasks be started again
}

func (c *Call) copyTenant(ctx context.Context, dest string, keep bool) (Copied, error) {
	to, err := c.place(ctx, dest)
	if err != nil {
		return Copied{}, err
	}
	defer to.Close()
	w := &copying{c: c, from: c.Store(), to: to, again: func() {}}
	defer func() { w.again() }()
	w.made = Copied{TenantID: c.By.Tenant, From: nameOf(c.Store()), To: to.Name, Kept: keep}
	mark := store.AwayError{Tenant: c.By.Tenant, Copy: rand.Text()[:12], Place: w.made.From}
	o := transfer.Options{Records: w.progress, Beside: w.beside, Prove: w.prove, Rest: w.rest, Last: w.last}
	if keep {
		w.made.Counts, err = transfer.Copy(ctx, w.from, to, mark, o)
	} else if err = w.stopped(); err == nil {
		gone := mark
		gone.Moved, gone.Place = true, to.Name
		from, can := w.from.(transfer.Source)
		if !can {
			return Copied{}, core.Errorf(core.Unavailable, "store copy: nothing can be moved away from this store; --keep copies it")
		}
		w.made.Counts, err = transfer.Move(ctx, from, to, mark, gone, o)
	}
	if err != nil {
		return Copied{}, w.failed(err)
	}
	return w.made, to.Close()
}

// finishMove does what is left of a move that was cut off when the tenant was handed
// over.
func (c *Call) finishMove(ctx context.Context, gone store.AwayError, dest string) (Copied, error) {
	to, err := c.place(ctx, dest)
	if err != nil {
		return Copied{}, err
	}
	defer to.Close()
	there, err := transfer.Finish(ctx, to, gone)
	switch {
	case err != nil:
		return Copied{}, fmt.Errorf("finish the move of %s to %s: %w", gone.Tenant, to.Name, err)
	case !there:
		return Copied{}, core.Errorf(core.Conflict, "%v; %s has no such copy", &gone, to.Name).With("field", "to")
	}
	return Copied{TenantID: gone.Tenant, From: nameOf(c.Store()), To: to.Name, finished: true}, to.Close()
}

// stopped refuses a move while agents are up: their processes would go on here.
func (w *copying) stopped() error {
	if !w.c.Active() {
		return nil
	}
	var up []string
	for _, a := range w.c.Snapshot(w.c.By.Tenant).Agents {
		if a.PID > 0 || a.Status == fleet.Starting || a.Status == fleet.Idle || a.Status == fleet.Busy {
			up = append(up, a.Name)
		}
	}
	if len(up) > 0 {
		return core.Errorf(core.Conflict, "store copy: agents of %s are up: %s; stop them first (agent stop), or say --keep", w.c.By.Tenant, core.Clip(strings.Join(up, ", "))).With("field", "tenant")
	}
	return nil
}

// rest has the tenant come to rest, and records what is about to happen.
func (w *copying) rest(ctx context.Context) error {
	c, tenant := w.c, w.c.By.Tenant
	w.again = c.Swarm.Rest(tenant)
	running := func() (n int64, err error) {
		err = c.Store().View(ctx, tenant, func(tx store.Tx) error { n = task.RunningIn(tx); return nil })
		return n, err
	}
	if !c.Active() {
		if n, err := running(); err != nil || n > 0 {
			return cmp.Or(err, error(core.Errorf(core.Conflict, "store copy: %d tasks of %s run, and no engine does: start one that ends them, or say --keep", n, tenant)))
		}
	} else if err := c.await(ctx, func() (still, why string, err error) {
		n, err := running()
		if n == 0 || err != nil {
			return "", "", err
		}
		return fmt.Sprintf("%d tasks of %s still run", n, tenant), fmt.Sprintf("no more tasks are started; waiting for %d that run …", n), nil
	}); err != nil {
		return err
	}
	return c.Audit.Update(ctx, c.By, func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{Type: "tenant.moving", Subject: "tenant", ID: tenant, Detail: map[string]string{"from": w.made.From, "to": w.to.Name}})
		return err
	})
}

// last refuses to hand over what came to life again, or another log.
func (w *copying) last(moment, copied store.Tx) error {
	if n := task.RunningIn(moment); n > 0 {
		return core.Errorf(core.Conflict, "store copy: %d tasks of %s were started meanwhile; try again", n, moment.Tenant())
	}
	head, err := audit.HeadOf(moment)
	if err != nil {
		return err
	}
	there, err := audit.HeadOf(copied)
	if err != nil {
		return err
	}
	if !bytes.Equal(head, there) {
		return fmt.Errorf("the copy of %s has another checkpoint of the log than its source", moment.Tenant())
	}
	if now, err := audit.ParseCheckpoint(head); err == nil || errors.Is(err, audit.ErrUnsigned) {
		w.made.Events, w.made.RootHash = now.Size, base64.StdEncoding.EncodeToString(now.Root[:])
	}
	return w.stopped()
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
			w.c.Progress(fmt.Sprintf("%d records, %s …", n.Records, face.Size(n.Bytes)))
		}
		w.told = now
	}
}

func (w *copying) prove(ctx context.Context, moment store.Tx, copied store.Store) (err error) {
	w.c.Progress("verifying the log and replaying it …")
	w.made.Proved, err = w.c.Prove(ctx, moment, copied, w.to.Path+".run/spill")
	return err
}

// beside copies what belongs to the tenant and lies beside the store.
func (w *copying) beside(ctx context.Context) error {
	at, to := w.c.Places(), w.to.Path
	w.made.With, w.made.Left = nil, nil
	if at.Key != "" {
		if err := w.key(ctx, at.Key, to+".key"); err != nil {
			return err
		}
	}
	if err := w.secretsKey(ctx, at.SecretKey, to+".secrets.key"); err != nil {
		return err
	}
	for _, dir := range []string{w.c.By.Tenant, filepath.Join("approved", "seen", w.c.By.Tenant)} {
		if err := copyTree(ctx, filepath.Join(at.Spill, dir), filepath.Join(to+".run/spill", dir)); err != nil {
			return err
		}
		w.with(filepath.Join(to+".run/spill", dir))
	}
	for _, stays := range [][2]string{
		{"homes", "homes of local agents"},
		{"agents", "sessions of local agents"},
		{"terminals", "homes of agents in terminals"},
		{"servers", "homes of MCP servers"},
		{"snapshots", "what agents work on, as it was before a call"},
		{"trees", "work trees and forks"},
		{"work", "directories of commands that agents and other machines asked for"},
		{"cad", "files of CAD workspaces"},
		{"workspaces", "what is known of Coder workspaces"},
		{"cells", "what runs left when an engine died"},
	} {
		if path := filepath.Join(at.Base, stays[0]); at.Base != "" && exists(path) {
			w.made.Left = append(w.made.Left, path+" ("+stays[1]+")")
		}
	}
	return nil
}

// with notes what was copied.
func (w *copying) with(path string) {
	if exists(path) {
		w.made.With = append(w.made.With, path)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// key copies the signing key. A store whose log another key signs takes no tenant: its
// log would name a key for ever that none before it signed.
func (w *copying) key(ctx context.Context, from, to string) error {
	same, err := audit.Succeeds(from, to)
	if err == nil && !same {
		err = w.spare(ctx, to)
	}
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

// spare moves a key aside that no tenant there needs, and says then that it is gone.
func (w *copying) spare(ctx context.Context, key string) error {
	tenants, err := w.to.Tenants(ctx)
	if err != nil || len(tenants) > 0 {
		return err
	}
	if err := os.Rename(key, key+".before-copy"); err != nil {
		return err
	}
	return fs.ErrNotExist
}

// secretsKey copies the key of the secrets.
func (w *copying) secretsKey(ctx context.Context, from, to string) error {
	has, err := w.c.Secrets.List(ctx, w.c.By.Tenant)
	if err != nil || len(has) == 0 {
		return err
	}
	a, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("the key of the secrets: %w", err)
	}
	b, err := os.ReadFile(to)
	if err == nil && !bytes.Equal(a, b) {
		err = w.spare(ctx, to)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := copyFile(from, to); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("the key of the secrets: %w", err)
	case !bytes.Equal(a, b):
		return core.Errorf(core.Conflict, "--to: the secrets there have another key, %s, than the %d of this tenant; delete these first, and set them there", to, len(has)).With("field", "to")
	}
	w.with(to)
	return nil
}
