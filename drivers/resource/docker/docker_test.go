package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/resource/docker"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

const tenant = "t_test"

func newDriver(t *testing.T, cli docker.CLI) *docker.Driver {
	t.Helper()
	return expect.Of(docker.New(docker.Options{CLI: cli, Cells: drivertest.Cells(t, cell.Options{}), Dir: t.TempDir()}))(t)
}

func look(t *testing.T, d *docker.Driver, target string) dag.Resource {
	t.Helper()
	return expect.Of(d.Look(t.Context(), target))(t)
}

func TestAVolumeIsKeptAndMadeAgain(t *testing.T) {
	e := engine(t)
	d := newDriver(t, e)
	e.write("data", "of data")
	r := look(t, d, "volume/data")
	expect.True(t, r.Kind == dag.ResourceVolume && r.Restorable() && r.Can(dag.CanFork), "%+v", r)
	got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	expect.Must(t, err == nil && got.Method == "docker_volume_tar" && got.Size >= int64(len("of data")), "%+v %v", got, err)
	e.write("data", "later")
	again, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	expect.True(t, err == nil && again.Ref == got.Ref, "taken again under its id: %+v %v", again, err)
	s := dag.Snapshot{ID: "s1", Method: got.Method, ExternalRef: got.Ref}
	e.breakCopy = true
	expect.Says(t, expect.Fault(d.Restore(t.Context(), tenant, "r1", s, r, "copy")), "unexpected EOF", "a copy that breaks")
	for _, want := range []string{"of data", "mine"} { // what is half made is made again, what is made stays
		made, err := d.Restore(t.Context(), tenant, "r1", s, r, "copy")
		expect.Must(t, err == nil && made.Name == "copy", "%v %v", made, err)
		expect.Is(t, e.read("copy"), want, "it holds")
		e.write("copy", "mine")
	}
	expect.Is(t, core.AsError(expect.Fault(d.Restore(t.Context(), tenant, "r2", s, r, "data"))).Code, core.Conflict, "over another")
	err = d.Undo(t.Context(), tenant, "r2", r, "data")
	expect.True(t, err == nil && e.read("data") == "later", "undoing what was not made removes another: %v", err)
	err = d.Undo(t.Context(), tenant, "r1", r, "copy")
	expect.True(t, err == nil && !e.has("volume", "copy"), "undo: %v", err)
	expect.Is(t, e.docker("container", "ls", "--all", "--quiet"), "", "carriers are left")
	for _, line := range e.said {
		expect.True(t, !strings.HasPrefix(line, "container run") && !strings.HasPrefix(line, "container start"), "it runs %s", line)
	}
	expect.No(t, d.Drop(t.Context(), tenant, s))
	expect.Is(t, core.AsError(expect.Fault(d.Restore(t.Context(), tenant, "r3", s, r, "copy"))).Code, core.NotFound, "dropped")
}

func TestWithoutTheCarriersImageItSaysWhatToPull(t *testing.T) {
	e := engine(t)
	d := newDriver(t, e)
	e.write("data", "of data")
	r := look(t, d, "volume/data")
	e.docker("image", "rm", "busybox")
	_, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	expect.True(t, core.AsError(err).Code == core.Unavailable && strings.Contains(err.Error(), "docker pull busybox"), "%v", err)
}

func TestAContainerIsImperative(t *testing.T) {
	e := engine(t)
	d := newDriver(t, e)
	id := e.run("web")
	r := look(t, d, "container/web")
	expect.True(t, r.Imperative && !r.Restorable() && r.Can(dag.CanSnapshot), "%+v", r)
	h := d.Handle(r)
	expect.True(t, h.Provider == "docker" && !h.Restorable && strings.Contains(h.ProviderID, id), "%+v", h)
	got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	expect.True(t, err == nil && got.Method == "oci_commit" && e.has("image", got.Ref.ID), "%+v %v", got, err)
	_, err = d.Restore(t.Context(), tenant, "r1", dag.Snapshot{ID: "s1"}, r, "copy")
	expect.True(t, core.AsError(err).Code == core.Conflict && strings.Contains(err.Error(), "unsupported"), "%v", err)
	l, err := d.Probe(t.Context(), r)
	expect.True(t, l == dag.Alive && err == nil, "%v %v", l, err)
	e.docker("container", "rm", "--force", "web")
	l, _ = d.Probe(t.Context(), r)
	expect.True(t, l == dag.Dead, "%v", l)
	e.run("web")
	l, _ = d.Probe(t.Context(), r)
	expect.True(t, l == dag.Dead, "another container of the name is taken for it")
	err = d.Drop(t.Context(), tenant, dag.Snapshot{ID: "s1", Method: got.Method})
	expect.True(t, err == nil && !e.has("image", got.Ref.ID), "the image is left, %v", err)
}

func TestAnImageIsKeptUnderANameOfItsOwn(t *testing.T) {
	e := engine(t)
	d := newDriver(t, e)
	id := e.image("app:1")
	r := look(t, d, "image/app:1")
	got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	expect.Must(t, err == nil && got.Ref.ID == id, "%v %v", got, err)
	e.docker("image", "rm", "app:1")
	s := dag.Snapshot{ID: "s1", Method: got.Method, ExternalRef: got.Ref}
	for range 2 {
		_, err := d.Restore(t.Context(), tenant, "r1", s, r, "app:fork")
		expect.True(t, err == nil && e.idOf("app:fork") == id, "%v", err)
	}
	e.image("taken")
	expect.Is(t, core.AsError(expect.Fault(d.Restore(t.Context(), tenant, "r2", s, r, "taken"))).Code, core.Conflict)
	err = d.Undo(t.Context(), tenant, "r1", r, "app:fork")
	expect.True(t, err == nil && !e.has("image", "app:fork"), "%v", err)
	err = d.Drop(t.Context(), tenant, s)
	expect.True(t, err == nil && !e.has("image", id), "the image is left, %v", err)
}

func TestUndoLeavesAnImageThatWasThereBefore(t *testing.T) {
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("the same image %t", same), func(t *testing.T) {
			e := engine(t)
			d := newDriver(t, e)
			e.image("app:1")
			r := look(t, d, "image/app:1")
			got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
			expect.No(t, err)
			if same {
				e.docker("image", "tag", "app:1", "app:latest")
			} else {
				e.image("app:latest")
			}
			there := e.idOf("app:latest")
			s := dag.Snapshot{ID: "s1", Method: got.Method, ExternalRef: got.Ref}
			_, err = d.Restore(t.Context(), tenant, "r1", s, r, "app:latest")
			expect.Must(t, (err == nil) == same, "%v", err)
			expect.No(t, d.Undo(t.Context(), tenant, "r1", r, "app:latest"))
			expect.Is(t, e.idOf("app:latest"), there, "app:latest is")
			expect.Of(d.Restore(t.Context(), tenant, "r2", s, r, "app:new"))(t)
			err = d.Undo(t.Context(), tenant, "r2", r, "app:new")
			expect.True(t, err == nil && !e.has("image", "app:new"), "app:new is left: %v", err)
		})
	}
}

func TestNamesAreNoOptions(t *testing.T) {
	e := engine(t)
	d := newDriver(t, e)
	for _, target := range []string{"", "data", "volume/", "volume/-v", "volume/a b", "volume/../x", "container/--help", "image/-x", "image/a\nb", "network/x", "volume/" + strings.Repeat("a", 200)} {
		_, err := d.Look(t.Context(), target)
		expect.True(t, core.AsError(err).Code == core.InvalidInput && strings.Contains(err.Error(), "target"), "%q: %v", target, err)
	}
	expect.True(t, len(e.said) == 0, "docker was asked: %v", e.said)
	e.write("data", "of data")
	r := look(t, d, "volume/data")
	for _, dest := range []string{"", "-x", "a/b"} {
		expect.Is(t, core.AsError(expect.Fault(d.Restore(t.Context(), tenant, "r1", dag.Snapshot{ID: "s1"}, r, dest))).Code, core.InvalidInput, dest)
	}
	for _, kind := range []string{"volume", "container", "image"} {
		expect.Is(t, core.AsError(expect.Fault(d.Look(t.Context(), kind+"/nosuch"))).Code, core.NotFound, kind)
	}
	for _, line := range e.said {
		expect.Has(t, line, " -- ", "names without -- before them")
	}
}

// noisy answers without an end.
type noisy struct{}

func (noisy) Run(_ context.Context, _ io.Reader, out io.Writer, _ ...string) error {
	for {
		if _, err := out.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
			return err
		}
	}
}

func TestAnAnswerWithoutEndIsCutOff(t *testing.T) {
	expect.Says(t, expect.Fault(newDriver(t, noisy{}).Look(t.Context(), "volume/data")), "more than is allowed")
}

// TestTheClientSaysThatNoEngineAnswers asks the docker command that is
// installed, at a place where no engine is, or finds that there is none.
func TestTheClientSaysThatNoEngineAnswers(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "no.sock"))
	t.Setenv("DOCKER_CONTEXT", "")
	want := "no docker engine answers"
	if _, err := exec.LookPath("docker"); err != nil {
		want = "no docker command"
	}
	d := newDriver(t, nil)
	if err := d.Available(t.Context()); core.AsError(err).Code != core.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	_, err := d.Look(t.Context(), "volume/data")
	expect.True(t, core.AsError(err).Code == core.Unavailable && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	t.Setenv("PATH", t.TempDir())
	err = d.Available(t.Context())
	expect.True(t, core.AsError(err).Code == core.Unavailable && strings.Contains(err.Error(), "no docker command"), "%v", err)
}
