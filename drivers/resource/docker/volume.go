package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

// inside is where a volume is in the container that its files go through.
const inside = "/volume"

func (d *Driver) tarPath(tenant, id string) string {
	return filepath.Join(d.opt.Dir, tenant, id+".tar")
}

// keepVolume copies a volume's files out. The tar has its name only once it is
// whole and on disk.
func (d *Driver) keepVolume(ctx context.Context, tenant, id, name string) (resource.Taken, error) {
	path := d.tarPath(tenant, id)
	if taken, err := tookTar(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return taken, err
	}
	if _, err := d.inspect(ctx, "volume", name); err != nil {
		return resource.Taken{}, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return resource.Taken{}, fmt.Errorf("make a place for tars of volumes: %w", err)
	}
	carrier := "swarmdeck-" + id
	if err := d.carry(ctx, carrier, name+":"+inside+":ro"); err != nil {
		return resource.Taken{}, err
	}
	defer d.putDown(ctx, carrier)
	tmp, err := os.Create(path + ".new")
	if err != nil {
		return resource.Taken{}, err
	}
	defer tmp.Close()
	err = d.opt.CLI.Run(ctx, nil, &pipe.Kept{Most: int(d.opt.Most), Over: errMuch(), To: tmp}, "container", "cp", "--", carrier+":"+inside+"/.", "-")
	if err == nil {
		err = tmp.Sync()
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return resource.Taken{}, fmt.Errorf("copy the files of volume %s: %w", name, plain(err))
	}
	return tookTar(path)
}

func tookTar(path string) (resource.Taken, error) {
	f, err := os.Open(path)
	if err != nil {
		return resource.Taken{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return resource.Taken{
		Method: methodTar, Ref: dag.ExtRef{Kind: "tar", ID: "sha256:" + hex.EncodeToString(h.Sum(nil))}, Consistency: "crash_consistent", Size: n,
	}, err
}

// carry makes a container that is never started, with a volume in it. One of
// an earlier try is taken away first.
func (d *Driver) carry(ctx context.Context, name, volume string) error {
	d.putDown(ctx, name)
	_, err := d.run(ctx, "container", "create", "--name", name, "--network", "none", "--pull", "never", "--volume", volume, "--", d.opt.Carrier, "never-started")
	if missing(err) {
		return core.Errorf(core.Unavailable, "the files of volumes go through a container of the image %s, which is not here: docker pull %s", d.opt.Carrier, d.opt.Carrier)
	}
	return err
}

// putDown takes such a container away; what fails is done before the next.
func (d *Driver) putDown(ctx context.Context, name string) {
	_, _ = d.run(context.WithoutCancel(ctx), "container", "rm", "--force", "--", name)
}

// made marks a volume with the id that made it.
const made = "swarmdeck.made"

// makeVolume makes a new volume of a tar. It is marked as done only once it is:
// one that is half made is made again from its beginning.
func (d *Driver) makeVolume(ctx context.Context, tenant, id, snapshot, dest string) (dag.Resource, error) {
	path := d.tarPath(tenant, snapshot)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return dag.Resource{}, core.Errorf(core.NotFound, "snapshot: the files of %s are not kept here any more", snapshot).With("field", "snapshot")
	}
	done := path + ".made-" + id
	mine, err := d.madeBy(ctx, dest)
	switch {
	case err != nil && !errors.Is(err, core.Kind(core.NotFound)):
		return dag.Resource{}, err
	case err == nil && mine != id:
		return dag.Resource{}, core.Errorf(core.Conflict, "to: there is a volume %s already; allowed: a new name", dest).With("field", "to")
	case err == nil:
		if _, whole := os.Stat(done); whole == nil {
			return describe("volume", dest, dest), nil
		}
		if _, err := d.run(ctx, "volume", "rm", "--", dest); err != nil {
			return dag.Resource{}, err
		}
	}
	if _, err := d.run(ctx, "volume", "create", "--label", made+"="+id, "--", dest); err != nil {
		return dag.Resource{}, err
	}
	carrier := "swarmdeck-" + id
	if err := d.carry(ctx, carrier, dest+":"+inside); err != nil {
		return dag.Resource{}, err
	}
	defer d.putDown(ctx, carrier)
	in, err := os.Open(path)
	if err != nil {
		return dag.Resource{}, err
	}
	defer in.Close()
	if err := d.opt.CLI.Run(ctx, in, io.Discard, "container", "cp", "--archive", "--", "-", carrier+":"+inside); err != nil {
		return dag.Resource{}, fmt.Errorf("copy files into volume %s: %w", dest, plain(err))
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		return dag.Resource{}, err
	}
	return describe("volume", dest, dest), nil
}

// madeBy is the id that made a volume; "" for one that is not ours.
func (d *Driver) madeBy(ctx context.Context, name string) (string, error) {
	if _, err := d.inspect(ctx, "volume", name); err != nil {
		return "", err
	}
	out, err := d.run(ctx, "volume", "inspect", "--format", `{{index .Labels "`+made+`"}}`, "--", name)
	label := strings.TrimSpace(string(out))
	if label == "<no value>" {
		label = ""
	}
	return label, err
}

func (d *Driver) removeVolume(ctx context.Context, _, id, dest string) error {
	mine, err := d.madeBy(ctx, dest)
	if errors.Is(err, core.Kind(core.NotFound)) || err == nil && mine != id {
		return nil
	}
	if err != nil {
		return err
	}
	d.putDown(ctx, "swarmdeck-"+id)
	_, err = d.run(ctx, "volume", "rm", "--", dest)
	return err
}

func (d *Driver) dropVolume(tenant, id string) error {
	path := d.tarPath(tenant, id)
	marks, err := filepath.Glob(path + ".made-*")
	errs := []error{err}
	for _, p := range append(marks, path) {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

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
