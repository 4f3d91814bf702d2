package command

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"swarmdeck/engine/core"
)

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
