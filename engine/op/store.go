package op

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/store"
	"swarmdeck/store/transfer"
)

// These work on the data file itself where the caller may have it to itself, so
// that one which no engine can open is checked and put back all the same; else
// on the store of the engine that has it open.
func stores() []*Op {
	return []*Op{
		define(Op{
			Name: "store check", Short: "Read every page and record of the data file; exit 3 if anything is wrong",
			Effect: Reads, Role: Admin, Alone: true,
		}, func(ctx context.Context, c *Call) (*store.Report, error) {
			r, err := onStore(ctx, c, store.Check, openStore.Check, transfer.Check)
			if err == nil {
				err = failed(r.Err())
			}
			return r, err
		}),
		storeBackup(),
		storeRestore(),
		storeCopy(),
		define(Op{Name: "store compact", Short: "Rewrite the data file without its free space, while work goes on", Role: Admin, Alone: true, Done: "compacted"},
			func(ctx context.Context, c *Call) (Told[Compacted], error) {
				return onStore(ctx, c, func(ctx context.Context, path string) (Told[Compacted], error) {
					before, after, err := store.Compact(ctx, path)
					return compacted(before, after, path), err
				}, func(open openStore, ctx context.Context) (Told[Compacted], error) {
					before, after, err := open.Compact(ctx)
					return compacted(before, after, open.Path()), err
				}, nil)
			}),
		storeStats(),
	}
}

// openStore is what can be done with a data file that an engine has open.
type openStore interface {
	Check(ctx context.Context) (*store.Report, error)
	Backup(ctx context.Context, dest string) (*store.Report, error)
	Stats(ctx context.Context) (*store.Stats, error)
	Compact(ctx context.Context) (before, after int64, err error)
	Path() string
}

// onStore does something with the data file, or with the store of the engine that
// has it open. Where that is another process's, its engine does it. base does it with
// a database; nil can't.
func onStore[T any](ctx context.Context, c *Call, file func(ctx context.Context, path string) (T, error), live func(openStore, context.Context) (T, error), base func(context.Context, store.Store) (T, error)) (got T, err error) {
	if c.Data != "" {
		if got, err = file(ctx, c.Data); !errors.Is(err, store.ErrLocked) {
			return got, err
		}
	}
	if err := c.Open(false); err != nil {
		return got, err
	}
	open, ok := c.Store().(openStore)
	switch {
	case !ok && base != nil:
		return base(ctx, c.Store())
	case !ok:
		return got, core.Errorf(core.Unavailable, "this engine's records are in a database, which its own tools look after")
	}
	return live(open, ctx)
}

// Compacted is a data file without its free space; sizes are in bytes.
type Compacted struct {
	After  int64  `json:"after"`
	Before int64  `json:"before"`
	Path   string `json:"path"`
}

func compacted(before, after int64, path string) Told[Compacted] {
	text := fmt.Sprintf("compacted %s: %s before, %s now", path, face.Size(before), face.Size(after))
	if after >= before {
		text += "; it held no free space"
	}
	return told(Compacted{after, before, path}, text)
}

func storeStats() *Op {
	var full bool
	return define(Op{
		Name: "store stats", Short: "Show the data file's figures", Effect: Reads, Alone: true, Full: true,
		Params: []*Param{flag(&full, "full", "also count every bucket's records (reads the whole file)")},
	}, func(ctx context.Context, c *Call) (Either[store.Stats, store.Report], error) {
		if full {
			r, err := onStore(ctx, c, store.Check, openStore.Check, transfer.Check)
			return Either[store.Stats, store.Report]{Other: r}, err
		}
		s, err := onStore(ctx, c, store.ReadStats, openStore.Stats, nil)
		return Either[store.Stats, store.Report]{One: s}, err
	})
}

func storeBackup() *Op {
	var dest string
	return define(Op{
		Name: "store backup", Short: "Copy the data file and what belongs to it, while work goes on, to a file that does not exist yet",
		Effect: Reads, Role: Admin, Alone: true,
		Long: "Copy the data file, as it is at one moment, or each tenant of a database, to FILE, and beside it the key that signs the log (FILE.key), the key of the\n" +
			"secrets (FILE.secrets.key) and outputs that are in files of their own (FILE.run/spill). Whoever has all of it can read the\n" +
			"secrets and sign the log: keep it as you keep the data file.",
		Example: "store backup ../swarmdeck-backup.db",
		Params:  []*Param{place(&dest, "FILE", "").makes()},
	}, func(ctx context.Context, c *Call) (Backup, error) {
		to := c.path(dest)
		copied := func(path string, data func() (*store.Report, error)) (Backup, error) {
			made, err := backUp(ctx, path, to, data)
			return made, FileFault("write", "file", dest, err)
		}
		return onStore(ctx, c, func(ctx context.Context, path string) (Backup, error) {
			return copied(path, func() (*store.Report, error) { return store.Backup(ctx, path, to) })
		}, func(open openStore, ctx context.Context) (Backup, error) {
			return copied(open.Path(), func() (*store.Report, error) { return open.Backup(ctx, to) })
		}, func(ctx context.Context, st store.Store) (Backup, error) {
			return copied(c.Places().Data(), func() (*store.Report, error) { return transfer.Backup(ctx, st, to) })
		})
	})
}

// Restored is a data file that a backup was put in the place of.
type Restored struct {
	From string   `json:"from"`
	Kept string   `json:"kept"` // where the file is that was there; "" for none
	Path string   `json:"path"`
	With []string `json:"with"` // what belongs to it
}

// String tells it.
func (r Restored) String() string {
	text := fmt.Sprintf("restored %s from %s", r.Path, r.From)
	if r.Kept != "" {
		text += "; the file that was there is now " + r.Kept
	}
	for _, path := range r.With {
		text += "\n  with " + path
	}
	return text
}

func storeRestore() *Op {
	var backup string
	return define(Op{
		Name: "store restore", Short: "Put a backup in the data file's place; the present file is kept beside it",
		Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Alone: true, Done: "restored",
		Params: []*Param{place(&backup, "FILE", "file")},
	}, func(ctx context.Context, c *Call) (r Restored, err error) {
		if c.Data == "" {
			return r, core.Errorf(core.Unavailable, "store restore: the data file is open, or a database. Leave the cockpit and run it from the command line; into a database, each tenant of a backup goes by store copy --data BACKUP --to postgres://…")
		}
		r.Path, r.From = c.Data, c.path(backup)
		if r.Kept, err = store.Restore(ctx, r.Path, r.From); err != nil {
			return r, err
		}
		if r.With, err = putBack(ctx, r.From, r.Path, r.Kept); err != nil {
			err = fmt.Errorf("the data file is restored, what belongs to it is not: %w", err)
		}
		return r, err
	})
}

// Verdict tells what a check of a data file found in one line.
func Verdict(r *store.Report) string {
	verdict := "ok"
	if !r.OK {
		verdict = fmt.Sprintf("DAMAGED: %d problems", r.Found)
	}
	var records int64
	for _, b := range r.Buckets {
		records += b.Records
	}
	if r.Pages == 0 { // of a database
		return fmt.Sprintf("%s: %s; %s, %d tenants, %d records", r.Path, verdict, face.Size(r.Size), len(r.Tenants), records)
	}
	return fmt.Sprintf("%s: %s; %s, %d tenants, %d records, %d of %d pages free",
		filepath.Clean(r.Path), verdict, face.Size(r.Size), len(r.Tenants), records, r.FreePages, r.Pages)
}
