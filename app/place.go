//go:build linux

package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
	"swarmdeck/ui/command"
)

// placeOf names the files that this machine has beside the store of a database, by a file
// among them: they keep the name where they are moved to another machine. Who only reads,
// where nobody has worked yet, has none.
func placeOf(need command.Need) (place.Place, error) {
	path := need.Data + ".run/place"
	name, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && need.ReadOnly {
		return "", nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		name = []byte(command.Machine() + "/" + rand.Text()[:8] + "\n")
		if err = os.WriteFile(path+".new", name, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	p := place.Place(strings.TrimSpace(string(name)))
	switch {
	case err != nil:
		return "", fmt.Errorf("name this machine's files of the database: %w", err)
	case !core.Printable(string(p)) || !strings.Contains(string(p), "/") || len(p) > 200:
		return "", core.Invalid(path, core.Clip(string(p)), "HOST/WORD, as it was written; remove the file, and what lies beside it counts as another machine's")
	}
	return p, nil
}
