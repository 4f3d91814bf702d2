package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/ui/command"
)

// serveCAD is the door for programs that model solids.
func serveCAD(ctx context.Context, e *command.Env, o command.CADEnv) (err error) {
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("directory %s: %w", o.Dir, errors.Join(err, errNoDir))
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
		return func(ctx context.Context) (env.Kernel, error) {
			found, err := freecad.Find(ctx)
			if err != nil {
				return nil, err
			}
			return freecad.Open(ctx, freecad.Options{Installation: found})
		}, func() error { return nil }
	}
	engine := embedded.New(embedded.Options{CacheDir: codeCache(), Tolerance: o.Tolerance})
	return engine.Open, engine.Close
}

// codeCache is where compiled code is kept between runs; "" where nothing can
// be kept, which only costs time.
func codeCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "swarmdeck", "code")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return dir
}
