package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/examples"
)

func (t *tree) demo() *cobra.Command {
	var dir string
	var keep bool
	return t.command(spec{
		stays: true, use: "demo", short: "Open the cockpit on a fresh example swarm", effect: Writes, role: Admin, ownScope: true,
		long: "Open the cockpit on a fresh data file with four example agents. They work in the current directory:\n" +
			"three only read it, the fourth asks before it writes a file. Its state is copied beside the data file\n" +
			"before their calls: how much that is at most is said first, and more than 50,000 files or 2 GiB are\n" +
			"refused. The data file is removed at the end unless --keep or --dir says where it stays.",
		example: "demo --dir ~/swarmdeck-demo",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&dir, "dir", "", "keep the demo's files in `DIR`, which holds no demo yet")
			f.BoolVar(&keep, "keep", false, "don't remove the demo's files at the end")
			source(f, "dir", "dir")
		},
		run: func(c *call, _ []string) (err error) {
			if c.env.Doors.Cockpit == nil || c.env.Caller.Door != core.DoorCLI {
				return core.Errorf(core.Unavailable, "demo: only from the command line")
			}
			files, bytes, err := demoSize(c.ctx, c.env.path("."))
			if err != nil {
				return err
			}
			place, temporary, err := c.demoDir(dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.env.Stderr, "the demo's agents work in %s: before their calls its state is kept beside the demo's data, at most %d files with %d bytes\n", core.Clip(c.env.path(".")), files, bytes)
			if temporary && !keep {
				defer func() { err = errors.Join(err, c.clearDemo(place)) }()
			} else {
				fmt.Fprintf(c.env.Stderr, "the demo's files are in %s; open it again with: swarmdeck --data %s\n", core.Clip(place), core.Quote(filepath.Join(place, "demo.db")))
			}
			swarm, err := examples.Extract("quickstart", place)
			if err != nil {
				return err
			}
			c.g.Data, c.g.Tenant = filepath.Join(place, "demo.db"), ""
			if err := c.activate(); err != nil {
				return err
			}
			file, err := c.loadSwarm(filepath.Join(swarm, "swarm.yaml"))
			if err != nil {
				return err
			}
			if err := c.scopeOf(file); err != nil {
				return err
			}
			if _, _, err := c.apply(file); err != nil {
				return fmt.Errorf("apply the example swarm: %w", err)
			}
			c.g.Tenant = file.Tenant
			return c.enterCockpit(Start{Globals: c.g, Open: c.env.Open, Dir: c.env.Dir})
		},
	})
}

// demoDir finds an absolute directory for the demo's files.
func (c *call) demoDir(dir string) (place string, temporary bool, err error) {
	if dir == "" {
		place, err = os.MkdirTemp("", "swarmdeck-demo-")
		if err != nil {
			return "", false, fmt.Errorf("make a directory for the demo: %w", err)
		}
		return place, true, nil
	}
	place, err = filepath.Abs(c.env.path(dir))
	if err != nil {
		return "", false, fmt.Errorf("find %s: %w", dir, err)
	}
	if _, err := os.Lstat(filepath.Join(place, "demo.db")); err == nil {
		return "", false, core.Errorf(core.Conflict, "dir: %s holds a demo already; open it with --data %s", core.Clip(dir), core.Quote(filepath.Join(dir, "demo.db"))).With("field", "dir").With("value", core.Clip(dir))
	}
	if err := os.MkdirAll(place, 0o700); err != nil {
		return "", false, fmt.Errorf("make %s for the demo: %w", dir, err)
	}
	return place, false, nil
}

// clearDemo closes the engine on the demo's data file and removes its files.
func (c *call) clearDemo(place string) error {
	if c.env.Close != nil {
		if err := c.env.Close(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(place); err != nil {
		return fmt.Errorf("remove the demo's files: %w", err)
	}
	return nil
}

// Bounds of the directory that the demo works in: its state is kept before each call.
const (
	demoFiles = 50_000
	demoBytes = 2 << 30
)

// demoSize counts the files that the demo's agents may find in a directory, as far as
// its bounds. What git keeps in .git is not counted: it is not copied.
func demoSize(ctx context.Context, dir string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if path == dir && err != nil {
			return fmt.Errorf("look through %s: %w", dir, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !e.Type().IsRegular() {
			if e.IsDir() && (err != nil || e.Name() == ".git") {
				return fs.SkipDir
			}
			return nil
		}
		files++
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		if files > demoFiles || bytes > demoBytes {
			return core.Errorf(core.InvalidInput,
				"demo: its agents work in %s and its state is copied before their calls, but that holds more than %d files or %d bytes; run it in a smaller directory, such as one project's", core.Clip(dir), demoFiles, demoBytes)
		}
		return nil
	})
	return files, bytes, err
}
