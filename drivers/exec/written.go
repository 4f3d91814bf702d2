package exec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/drivers/cell/pin/named"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/judge/edits"
)

// written finds the files of the agent's directory that a tool request writes whole, as
// they are before: who is asked sees how they would change, or that they are new, and an
// answer holds for that alone.
func (a *agent) written(args core.Raw) []judge.File {
	if a.Host != "" { // they are not this machine's
		return nil
	}
	argv := []string{"tee"}
	for _, path := range edits.Written(args) {
		if filepath.IsAbs(path) {
			rel, err := filepath.Rel(a.Spec.Dir, path)
			if err != nil {
				continue
			}
			path = rel
		}
		if filepath.IsLocal(path) {
			argv = append(argv, filepath.Clean(path))
		}
	}
	if len(argv) == 1 {
		return nil
	}
	files := a.Pins.Look(a.Spec.Whose.Tenant, named.Line{Argv: argv, Dir: a.Spec.Dir})
	dir, err := os.OpenRoot(a.Spec.Dir) // what a link leads out of it is not looked at
	if err != nil {
		return files
	}
	defer dir.Close()
	for _, path := range argv[1:] {
		_, err := dir.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(files, func(f judge.File) bool { return f.Path == path }) {
			files = append(files, judge.File{Path: path})
		}
	}
	return files
}
