// Package docker keeps volumes, containers and images of docker, by the docker
// command.
//
//	volume/NAME     its files, as a tar that is kept here (docker_volume_tar); made again as a new volume
//	container/NAME  its file system, as an image (oci_commit); what runs in it can't be made again
//	image/NAME      the image, which never changes, under a name of its own (oci_image); made again as a tag
//
// Nothing of an image is run: files go in and out through a container that is
// made and never started. Every name is checked before it is an argument. When
// there is no docker, or its engine does not answer, every call says so.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

// Methods of the snapshots.
const (
	methodTar    = "docker_volume_tar" // model 4
	methodCommit = "oci_commit"        // model 4
	methodImage  = "oci_image"
)

// Options of New.
type Options struct {
	// CLI runs the docker command; nil is the one in the PATH, which Cells starts.
	CLI   CLI
	Cells *cell.Supervisor
	// Dir is where tars of volumes are kept, in a directory for each tenant.
	Dir string
	// Carrier is an image that is here, of which the containers are made that
	// files of volumes go through. They are never started; "" is busybox.
	Carrier string
	// Most is how large the tar of one volume may be, in bytes; 0 means 8 GiB.
	Most int64
}

// Driver keeps what docker has.
type Driver struct{ opt Options }

var _ resource.Driver = (*Driver)(nil)

// New makes a driver. It runs nothing.
func New(opt Options) (*Driver, error) {
	if opt.Dir == "" {
		return nil, core.Invalid("dir", "", "a directory")
	}
	opt.CLI = cmp.Or[CLI](opt.CLI, Command{opt.Cells})
	opt.Carrier = cmp.Or(opt.Carrier, "busybox")
	opt.Most = cmp.Or(opt.Most, 8<<30)
	return &Driver{opt}, nil
}

var (
	namePattern  = core.Pattern(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)
	imagePattern = core.Pattern(`^[a-zA-Z0-9][a-zA-Z0-9_./:@-]{0,254}$`)
)

// checkName refuses what could be read as an option or a path.
func checkName(field, kind, name string) error {
	pattern := namePattern
	if kind == "image" {
		pattern = imagePattern
	}
	if !pattern().MatchString(name) {
		return core.Invalid(field, name, "the name of a docker "+kind)
	}
	return nil
}

// split reads kind/NAME.
func split(field, target string) (kind, name string, err error) {
	kind, name, _ = strings.Cut(target, "/")
	switch kind {
	case "volume", "container", "image":
		return kind, name, checkName(field, kind, name)
	}
	return "", "", core.Invalid(field, target, "docker:volume/NAME, docker:container/NAME or docker:image/NAME")
}

func (d *Driver) Look(ctx context.Context, target string) (dag.Resource, error) {
	kind, name, err := split("target", target)
	if err != nil {
		return dag.Resource{}, err
	}
	id, err := d.inspect(ctx, kind, name)
	if err != nil {
		return dag.Resource{}, err
	}
	return describe(kind, name, id), nil
}

func describe(kind, name, id string) dag.Resource {
	r := dag.Resource{ID: "docker-" + kind + "-" + name, Name: name, Metadata: resource.Metadata("docker", "", map[string]string{"kind": kind, "name": name, "id": id})}
	switch kind {
	case "volume":
		r.Kind, r.Capabilities = dag.ResourceVolume, []dag.Capability{dag.CanSnapshot, dag.CanRestore, dag.CanFork, dag.CanShare}
	case "container":
		r.Kind, r.Capabilities, r.Imperative = dag.ResourceContainer, []dag.Capability{dag.CanSnapshot}, true
	default:
		r.Kind, r.Capabilities = dag.ResourceImage, []dag.Capability{dag.CanSnapshot, dag.CanRestore, dag.CanFork, dag.CanShare}
	}
	return r
}

func (d *Driver) Handle(r dag.Resource) dag.Handle {
	k := knownOf(r)
	return dag.Handle{ID: "handle-" + r.ID, ResourceRef: r.ID, Provider: "docker", ProviderID: k.ID, Capabilities: []string{"attach", "exec", "kill", "logs"}}
}

// known is what is kept of a resource.
type known struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id"`
}

func knownOf(r dag.Resource) (k known) {
	_ = core.DecodeStored(r.Metadata, &k) // checked before it is used
	return k
}

func kindOf(r dag.Resource) (k known, err error) {
	k = knownOf(r)
	_, _, err = split("resource", k.Kind+"/"+k.Name)
	return k, err
}

// formats are what inspect prints of each kind: one line that names it.
var formats = map[string]string{"volume": "{{.Name}} {{.CreatedAt}}", "container": "{{.Id}} {{.State.Status}}", "image": "{{.Id}}"}

// inspect finds the id of what has a name; NOT_FOUND when nothing has.
func (d *Driver) inspect(ctx context.Context, kind, name string) (string, error) {
	out, err := d.run(ctx, kind, "inspect", "--format", formats[kind], "--", name)
	if err != nil {
		if missing(err) {
			return "", core.Errorf(core.NotFound, "target: there is no docker %s %s", kind, name).With("field", "target")
		}
		return "", err
	}
	line := strings.TrimSpace(string(out))
	if line == "" || strings.Contains(line, "\n") || len(line) > 400 {
		return "", core.Errorf(core.Unavailable, "docker %s inspect %s answered %.80q, which is no answer", kind, name, line)
	}
	return line, nil
}

func missing(err error) bool {
	var failed *Failed
	return errors.As(err, &failed) && strings.Contains(strings.ToLower(failed.Stderr), "no such ")
}

// Probe implements resource.Driver. A container is alive while it runs.
func (d *Driver) Probe(ctx context.Context, r dag.Resource) (dag.Liveness, error) {
	k, err := kindOf(r)
	if err != nil {
		return dag.LiveUnknown, err
	}
	id, err := d.inspect(ctx, k.Kind, k.Name)
	switch {
	case errors.Is(err, core.Kind(core.NotFound)):
		return dag.Dead, nil
	case err != nil:
		return dag.LiveUnknown, err
	case k.Kind == "container" && (!strings.HasSuffix(id, " running") || strings.Fields(id)[0] != strings.Fields(k.ID + " ")[0]):
		return dag.Dead, nil
	}
	return dag.Alive, nil
}

func (d *Driver) Snapshot(ctx context.Context, tenant, id string, r dag.Resource, _ *dag.ExtRef) (resource.Taken, error) {
	k, err := kindOf(r)
	if err == nil {
		err = errors.Join(checkName("id", "snapshot", id), core.CheckTenant(tenant))
	}
	if err != nil {
		return resource.Taken{}, err
	}
	if k.Kind == "volume" {
		return d.keepVolume(ctx, tenant, id, k.Name)
	}
	tag := kept(tenant, id)
	image, err := d.inspect(ctx, "image", tag)
	if errors.Is(err, core.Kind(core.NotFound)) {
		if k.Kind == "container" {
			_, err = d.run(ctx, "container", "commit", "--", k.Name, tag)
		} else {
			_, err = d.run(ctx, "image", "tag", "--", k.Name, tag)
		}
		if err == nil {
			image, err = d.inspect(ctx, "image", tag)
		}
	}
	if err != nil {
		return resource.Taken{}, err
	}
	out := resource.Taken{Method: methodImage, Ref: dag.ExtRef{Kind: "oci", ID: image}, Consistency: "crash_consistent"}
	if k.Kind == "container" {
		out.Method, out.Notes = methodCommit, []string{"what runs in the container and its volumes are not in it"}
	}
	return out, nil
}

// kept is the name under which an image is kept.
func kept(tenant, id string) string {
	return "swarmdeck-kept/" + strings.ToLower(tenant) + ":" + id
}

func (d *Driver) Restore(ctx context.Context, tenant, id string, s dag.Snapshot, r dag.Resource, dest string) (dag.Resource, error) {
	k, err := kindOf(r)
	if err == nil {
		err = errors.Join(checkName("id", "snapshot", id), checkName("snapshot", "snapshot", s.ID), core.CheckTenant(tenant))
	}
	switch {
	case err != nil:
		return dag.Resource{}, err
	case k.Kind == "container":
		return dag.Resource{}, core.Errorf(core.Conflict, "restore: unsupported: what runs in a container can't be made again").With("outcome", "unsupported")
	case dest == "":
		return dag.Resource{}, core.Errorf(core.InvalidInput, "to: a docker %s that is there is not replaced; give the name of a new one", k.Kind).With("field", "to")
	}
	if err := checkName("to", k.Kind, dest); err != nil {
		return dag.Resource{}, err
	}
	if k.Kind == "volume" {
		return d.makeVolume(ctx, tenant, id, s.ID, dest)
	}
	image, err := d.inspect(ctx, "image", kept(tenant, s.ID))
	if err != nil {
		return dag.Resource{}, err
	}
	there, err := d.inspect(ctx, "image", dest)
	switch {
	case err == nil && there != image:
		return dag.Resource{}, core.Errorf(core.Conflict, "to: there is an image %s already; allowed: a new name", dest).With("field", "to")
	case err == nil:
		return describe("image", dest, image), nil // ours only if it is marked
	case !errors.Is(err, core.Kind(core.NotFound)):
		return dag.Resource{}, err
	}
	if err := d.markImage(tenant, id, s.ID, dest, image); err != nil {
		return dag.Resource{}, err
	}
	if _, err := d.run(ctx, "image", "tag", "--", kept(tenant, s.ID), dest); err != nil {
		return dag.Resource{}, err
	}
	return describe("image", dest, image), nil
}

func (d *Driver) Undo(ctx context.Context, tenant, id string, r dag.Resource, dest string) error {
	k, err := kindOf(r)
	if err != nil || dest == "" || k.Kind == "container" {
		return err
	}
	if err := checkName("to", k.Kind, dest); err != nil {
		return err
	}
	if k.Kind == "volume" {
		return d.removeVolume(ctx, tenant, id, dest)
	}
	if err := errors.Join(checkName("id", "snapshot", id), core.CheckTenant(tenant)); err != nil {
		return err
	}
	return d.removeImage(ctx, tenant, id, dest)
}

func (d *Driver) Drop(ctx context.Context, tenant string, s dag.Snapshot) error {
	if err := errors.Join(checkName("id", "snapshot", s.ID), core.CheckTenant(tenant)); err != nil {
		return err
	}
	if s.Method == methodTar {
		return d.dropVolume(tenant, s.ID)
	}
	if _, err := d.run(ctx, "image", "rm", "--", kept(tenant, s.ID)); err != nil && !missing(err) {
		return fmt.Errorf("give the image of %s up: %w", s.ID, err)
	}
	return d.dropVolume(tenant, s.ID) // the marks
}

func (d *Driver) Sweep(context.Context, string) error { return nil }
