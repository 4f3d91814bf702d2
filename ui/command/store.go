package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// openStore is what can be done with a data file that an engine has open.
type openStore interface {
	Check(ctx context.Context) (*store.Report, error)
	Backup(ctx context.Context, dest string) (*store.Report, error)
	Stats(ctx context.Context) (*store.Stats, error)
	Compact(ctx context.Context) (before, after int64, err error)
	Path() string
}

// onFile says that the line works on the file itself: it is one of the command
// line, and no engine that is running carries it out for another process.
func (c *call) onFile() bool { return c.env.Caller.Door == core.DoorCLI && !c.env.Away }

// onStore does something with the data file itself, or with the store of the
// engine that has it open. Where that is another process's, the line is carried
// out there.
func onStore[T any](c *call, file func(ctx context.Context, path string) (T, error), live func(openStore, context.Context) (T, error)) (got T, err error) {
	if c.onFile() {
		if got, err = file(c.ctx, c.g.Data); !errors.Is(err, store.ErrLocked) {
			return got, err
		}
	}
	eng, err := c.engine()
	if err != nil {
		return got, err
	}
	open, ok := eng.Store().(openStore)
	if !ok {
		return got, core.Errorf(core.Unavailable, "%s: this engine's store has no such operation", commandPath(c.cmd))
	}
	return live(open, c.ctx)
}

// atRest refuses what needs the file to itself while an engine has it open.
func (c *call) atRest() error {
	if c.onFile() {
		return nil
	}
	return core.Errorf(core.Unavailable, "%s: the data file is open; leave the cockpit and run it from the command line", commandPath(c.cmd))
}

func (t *tree) stores() *cobra.Command {
	var full bool
	return t.group("store", "The data file",
		t.command(spec{
			use: "check", short: "Read every page and record of the data file; exit 3 if anything is wrong", effect: Reads, role: Admin, ownScope: true,
			run: func(c *call, _ []string) error {
				report, err := onStore(c, store.Check, openStore.Check)
				if err != nil {
					return err
				}
				if err := c.showReport(report); err != nil {
					return err
				}
				return report.Err()
			},
		}),
		t.command(spec{
			use: "backup FILE", short: "Copy the data file and what belongs to it, while work goes on, to a file that does not exist yet", effect: Reads, role: Admin, args: []string{"file"}, ownScope: true,
			long: "Copy the data file, as it is at one moment, to FILE, and beside it the key that signs the log (FILE.key), the key of the\n" +
				"secrets (FILE.secrets.key) and outputs that are in files of their own (FILE.spill). Whoever has all of it can read the\n" +
				"secrets and sign the log: keep it as you keep the data file.",
			example: "store backup ../swarmdeck-backup.db",
			check:   func(c *call, _ []string) error { return c.makesFile() },
			run: func(c *call, args []string) error {
				dest := c.env.path(args[0])
				made, err := onStore(c, func(ctx context.Context, path string) (backedUp, error) {
					return backUp(ctx, path, dest, func() (*store.Report, error) { return store.Backup(ctx, path, dest) })
				}, func(open openStore, ctx context.Context) (backedUp, error) {
					return backUp(ctx, open.Path(), dest, func() (*store.Report, error) { return open.Backup(ctx, dest) })
				})
				if err != nil {
					return outError("file", args[0], err)
				}
				if c.g.Output != "text" {
					return c.show(made)
				}
				if err := c.showReport(made.Report); err != nil {
					return err
				}
				for _, path := range made.With {
					if err := c.say(nil, "  with %s", path); err != nil {
						return err
					}
				}
				return nil
			},
		}),
		t.command(spec{
			use: "restore FILE", short: "Put a backup in the data file's place; the present file is kept beside it", effect: Destroys, role: Admin,
			confirm: ConfirmAsk, args: []string{"file"}, ownScope: true,
			run: func(c *call, args []string) error {
				if err := c.atRest(); err != nil {
					return err
				}
				kept, err := store.Restore(c.ctx, c.g.Data, c.env.path(args[0]))
				if err != nil {
					return err
				}
				with, err := putBack(c.ctx, c.env.path(args[0]), c.g.Data, kept)
				if err != nil {
					return fmt.Errorf("the data file is restored, what belongs to it is not: %w", err)
				}
				text := fmt.Sprintf("restored %s from %s", c.g.Data, args[0])
				if kept != "" {
					text += "; the file that was there is now " + kept
				}
				for _, path := range with {
					text += "\n  with " + path
				}
				return c.say(map[string]any{"path": c.g.Data, "from": c.env.path(args[0]), "kept": kept, "with": with}, "%s", text)
			},
		}),
		t.command(spec{
			use: "compact", short: "Rewrite the data file without its free space, while work goes on", effect: Writes, role: Admin, ownScope: true,
			run: func(c *call, _ []string) error {
				type sizes struct{ before, after int64 }
				found, err := onStore(c, func(ctx context.Context, path string) (s sizes, err error) {
					s.before, s.after, err = store.Compact(ctx, path)
					return s, err
				}, func(open openStore, ctx context.Context) (s sizes, err error) {
					s.before, s.after, err = open.Compact(ctx)
					return s, err
				})
				if err != nil {
					return err
				}
				before, after := found.before, found.after
				text := fmt.Sprintf("compacted %s: %s before, %s now", c.g.Data, size(before), size(after))
				if after >= before {
					text += "; it held no free space"
				}
				return c.say(map[string]any{"path": c.g.Data, "before": before, "after": after}, "%s", text)
			},
		}),
		t.command(spec{
			use: "stats", short: "Show the data file's figures", effect: Reads, ownScope: true,
			flags: func(f *pflag.FlagSet) {
				f.BoolVar(&full, "full", false, "also count every bucket's records (reads the whole file)")
			},
			run: func(c *call, _ []string) error {
				var found any
				var err error
				if full {
					found, err = onStore(c, store.Check, openStore.Check)
				} else {
					found, err = onStore(c, store.ReadStats, openStore.Stats)
				}
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
	)
}

// showReport prints a check's report; in text only what matters.
func (c *call) showReport(r *store.Report) error {
	if c.g.Output != "text" {
		return c.show(r)
	}
	verdict := "ok"
	if !r.OK {
		verdict = fmt.Sprintf("DAMAGED: %d problems", r.Found)
	}
	var records int64
	for _, b := range r.Buckets {
		records += b.Records
	}
	if err := c.say(nil, "%s: %s; %s, %d tenants, %d records, %d of %d pages free",
		filepath.Clean(r.Path), verdict, size(r.Size), len(r.Tenants), records, r.FreePages, r.Pages); err != nil {
		return err
	}
	for _, p := range r.Problems {
		if err := c.say(nil, "  %s", p); err != nil {
			return err
		}
	}
	return nil
}

// size prints bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
