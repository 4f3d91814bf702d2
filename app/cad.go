//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/drivers/cad/pool"
	"swarmdeck/drivers/cell"
	"swarmdeck/engine"
	"swarmdeck/ui/command"
)

// serveCAD is the door for programs that model solids.
func serveCAD(ctx context.Context, e *command.Env, o command.CADEnv) (err error) {
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("directory %s: %w", o.Dir, errors.Join(err, errNoDir))
	}
	if o.Journal { // the engine says where the files of each workspace lie
		o.Dir = ""
	}
	// The memory of a kernel is one live block of this process: collecting at
	// four times that would keep as much again in garbage.
	if e.Getenv("GOGC") == "" {
		debug.SetGCPercent(100)
	}
	open, done := cadKernel(o)
	defer func() { err = errors.Join(err, done()) }()
	server, err := env.New(ctx, env.Options{
		Open: open, Dir: o.Dir, Journal: o.Journal, Tolerance: o.Tolerance, Version: e.Version,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return server.Serve(ctx, e.Stdin, e.Stdout)
}

var errNoDir = errors.New("it must be there before files are")

// cadKernel says how to open kernels, and frees what they share.
func cadKernel(o command.CADEnv) (open func(context.Context) (env.Kernel, error), done func() error) {
	if o.Kernel == env.OCCT {
		var found freecad.Installation
		return func(ctx context.Context) (_ env.Kernel, err error) {
			if found.Python == "" { // looked for once: a kernel that was lost comes back sooner
				if found, err = freecad.Find(ctx, nil); err != nil {
					return nil, err
				}
			}
			return freecad.Open(ctx, freecad.Options{Installation: found})
		}, func() error { return nil }
	}
	engine := embedded.New(embedded.Options{CacheDir: embedded.CodeCache(), Tolerance: o.Tolerance})
	return engine.Open, engine.Close
}

// cadPool gives the engine processes of this program that compute geometry, and
// each workspace a directory for its files beside the data file.
func (h *instance) cadPool(need command.Need, sup *cell.Supervisor, opt *engine.Options) {
	workers := pool.New(pool.Options{
		Supervisor: sup, Command: []string{"/proc/self/exe", "cad", "env", "--journal"},
		Files: h.beside(need.Data) + "/cad",
		Kernels: []pool.Kernel{{Name: env.Embedded, Extra: embedded.ShareCache}, {Name: env.OCCT, Find: func(ctx context.Context) error {
			_, err := freecad.Find(ctx, sup)
			return err
		}}},
	})
	h.closers = append(h.closers, func() error {
		ctx, stop := context.WithTimeout(context.Background(), cadPatience)
		defer stop()
		return workers.Close(ctx)
	})
	opt.CADPool, opt.CADParameters, opt.CADDir = workers, env.NewParameters(), h.beside(need.Data)+"/cad"
}

// cadPatience is how long the processes that compute geometry may take to end.
const cadPatience = 10 * time.Second
