package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"swarmdeck/engine/core"
)

// markImage writes down that an id makes the name dest for an image. It is
// called before the name is made, and only when nothing has that name.
func (d *Driver) markImage(tenant, id, snapshot, dest, image string) error {
	path := d.tarPath(tenant, snapshot) + ".made-" + id
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a place for marks of images: %w", err)
	}
	return os.WriteFile(path, []byte(dest+" "+image), 0o600)
}

// removeImage takes the name away that an id made; a name that is not marked,
// or is another image's by now, is left alone.
func (d *Driver) removeImage(ctx context.Context, tenant, id, dest string) error {
	marks, err := filepath.Glob(d.tarPath(tenant, "*") + ".made-" + id)
	if err != nil || len(marks) == 0 {
		return err
	}
	image, err := d.inspect(ctx, "image", dest)
	if err != nil && !errors.Is(err, core.Kind(core.NotFound)) {
		return err
	}
	there := err == nil
	for _, mark := range marks {
		text, err := os.ReadFile(mark)
		if err != nil {
			return err
		}
		if there && string(text) == dest+" "+image {
			if _, err := d.run(ctx, "image", "rm", "--no-prune", "--", dest); err != nil && !missing(err) {
				return err
			}
		}
		if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
