package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/resource/docker"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

const tenant = "t_test"

// engine answers as docker does, for the few commands that are used. What it
// says of mistakes is what docker says.
type engine struct {
	volumes    map[string]*volume
	containers map[string]string // name → volume mounted
	running    map[string]string // name → id
	images     map[string]string // name → id
	said       []string
	failCopy   bool // the next copy breaks in the middle
}

type volume struct {
	label string
	files []byte
}

func newEngine() *engine {
	return &engine{
		volumes: map[string]*volume{"data": {files: []byte("tar of data")}}, containers: map[string]string{},
		running: map[string]string{"web": "c0ffee"}, images: map[string]string{"busybox": "sha256:b0", "app:1": "sha256:a1"},
	}
}

func (e *engine) Run(_ context.Context, in io.Reader, out io.Writer, args ...string) error {
	e.said = append(e.said, strings.Join(args, " "))
	no := func(what, name string) error {
		return &docker.Failed{Args: args, Code: 1, Stderr: "Error response from daemon: No such " + what + ": " + name}
	}
	last := args[len(args)-1]
	say := func(text string) error {
		_, err := fmt.Fprintln(out, text)
		return err
	}
	if i := slices.Index(args, "--"); i < 0 {
		return fmt.Errorf("names without -- before them: %v", args)
	}
	switch args[0] + " " + args[1] {
	case "volume inspect":
		v := e.volumes[last]
		if v == nil {
			return no("volume", last)
		}
		if strings.Contains(args[3], "Labels") {
			return say(v.label)
		}
		return say(last + " 2026-01-02T03:04:05Z")
	case "volume create":
		e.volumes[last] = &volume{label: strings.TrimPrefix(args[3], "swarmdeck.made=")}
		return say(last)
	case "volume rm":
		delete(e.volumes, last)
		return nil
	case "container inspect":
		if e.running[last] == "" {
			return no("container", last)
		}
		return say(e.running[last] + " running")
	case "container commit":
		e.images[last] = "sha256:committed"
		return say("sha256:committed")
	case "container create":
		image := args[slices.Index(args, "--")+1]
		if e.images[image] == "" {
			return no("image", image)
		}
		mount := args[slices.Index(args, "--volume")+1]
		e.containers[args[slices.Index(args, "--name")+1]] = strings.Split(mount, ":")[0]
		return say("id")
	case "container rm":
		delete(e.containers, last)
		return nil
	case "container cp":
		if last == "-" {
			from, _, _ := strings.Cut(args[len(args)-2], ":")
			_, err := out.Write(e.volumes[e.containers[from]].files)
			return err
		}
		to, _, _ := strings.Cut(last, ":")
		v := e.volumes[e.containers[to]]
		data, err := io.ReadAll(in)
		if e.failCopy {
			e.failCopy, v.files = false, data[:3]
			return &docker.Failed{Args: args, Code: 1, Stderr: "unexpected EOF"}
		}
		v.files = data
		return err
	case "image inspect":
		if e.images[last] == "" {
			return no("image", last)
		}
		return say(e.images[last])
	case "image tag":
		e.images[last] = e.images[args[len(args)-2]]
		return nil
	case "image rm":
		if e.images[last] == "" {
			return no("image", last)
		}
		delete(e.images, last)
		return nil
	}
	return fmt.Errorf("docker has no %v", args)
}

func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	os.Exit(m.Run())
}

func newDriver(t *testing.T, cli docker.CLI) *docker.Driver {
	t.Helper()
	sup, err := cell.NewSupervisor(cell.Options{Instance: "docker-test-" + strconv.Itoa(os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sup.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := docker.New(docker.Options{CLI: cli, Cells: sup, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func look(t *testing.T, d *docker.Driver, target string) dag.Resource {
	t.Helper()
	r, err := d.Look(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAVolumeIsKeptAndMadeAgain(t *testing.T) {
	e := newEngine()
	d := newDriver(t, e)
	r := look(t, d, "volume/data")
	if r.Kind != dag.ResourceVolume || !r.Restorable() || !r.Can(dag.CanFork) {
		t.Errorf("%+v", r)
	}
	got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	if err != nil || got.Method != "docker_volume_tar" || got.Size != int64(len("tar of data")) {
		t.Fatalf("%+v %v", got, err)
	}
	e.volumes["data"].files = []byte("later")
	if again, err := d.Snapshot(t.Context(), tenant, "s1", r, nil); err != nil || again.Ref != got.Ref {
		t.Errorf("taken again under its id: %+v %v", again, err)
	}
	s := dag.Snapshot{ID: "s1", Method: got.Method, ExternalRef: got.Ref}
	e.failCopy = true
	if _, err := d.Restore(t.Context(), tenant, "r1", s, r, "copy"); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("a copy that breaks: %v", err)
	}
	for range 2 { // what is half made is made again, what is made stays
		made, err := d.Restore(t.Context(), tenant, "r1", s, r, "copy")
		if err != nil || made.Name != "copy" {
			t.Fatal(made, err)
		}
		if v := e.volumes["copy"]; string(v.files) != "tar of data" && string(v.files) != "mine" {
			t.Errorf("restored %q", v.files)
		}
		e.volumes["copy"].files = []byte("mine")
	}
	if string(e.volumes["copy"].files) != "mine" {
		t.Error("a restore that was done is done again")
	}
	if _, err := d.Restore(t.Context(), tenant, "r2", s, r, "data"); core.AsError(err).Code != core.Conflict {
		t.Errorf("over another: %v", err)
	}
	if err := d.Undo(t.Context(), tenant, "r2", r, "data"); err != nil || e.volumes["data"] == nil {
		t.Errorf("undoing what was not made removes another: %v", err)
	}
	if err := d.Undo(t.Context(), tenant, "r1", r, "copy"); err != nil || e.volumes["copy"] != nil {
		t.Errorf("undo: %v", err)
	}
	if len(e.containers) > 0 {
		t.Errorf("carriers are left: %v", e.containers)
	}
	for _, line := range e.said {
		if strings.HasPrefix(line, "container run") || strings.HasPrefix(line, "container start") {
			t.Errorf("it runs %s", line)
		}
	}
	if err := d.Drop(t.Context(), tenant, s); err != nil {
		t.Error(err)
	}
	if _, err := d.Restore(t.Context(), tenant, "r3", s, r, "copy"); core.AsError(err).Code != core.NotFound {
		t.Errorf("dropped: %v", err)
	}
}

func TestAContainerIsImperative(t *testing.T) {
	e := newEngine()
	d := newDriver(t, e)
	r := look(t, d, "container/web")
	if !r.Imperative || r.Restorable() || !r.Can(dag.CanSnapshot) {
		t.Errorf("%+v", r)
	}
	if h := d.Handle(r); h.Provider != "docker" || h.Restorable || !strings.Contains(h.ProviderID, "c0ffee") {
		t.Errorf("%+v", h)
	}
	got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	if err != nil || got.Method != "oci_commit" || got.Ref.ID != "sha256:committed" {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := d.Restore(t.Context(), tenant, "r1", dag.Snapshot{ID: "s1"}, r, "copy"); core.AsError(err).Code != core.Conflict || !strings.Contains(err.Error(), "unsupported") {
		t.Error(err)
	}
	if l, err := d.Probe(t.Context(), r); l != dag.Alive || err != nil {
		t.Error(l, err)
	}
	e.running["web"] = "another"
	if l, _ := d.Probe(t.Context(), r); l != dag.Dead {
		t.Error("another container of the name is taken for it")
	}
	delete(e.running, "web")
	if l, _ := d.Probe(t.Context(), r); l != dag.Dead {
		t.Error(l)
	}
	if err := d.Drop(t.Context(), tenant, dag.Snapshot{ID: "s1", Method: got.Method}); err != nil {
		t.Error(err)
	}
}

func TestAnImageIsKeptUnderANameOfItsOwn(t *testing.T) {
	e := newEngine()
	d := newDriver(t, e)
	r := look(t, d, "image/app:1")
	got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
	if err != nil || got.Ref.ID != "sha256:a1" {
		t.Fatal(got, err)
	}
	delete(e.images, "app:1")
	s := dag.Snapshot{ID: "s1", Method: got.Method, ExternalRef: got.Ref}
	for range 2 {
		if _, err := d.Restore(t.Context(), tenant, "r1", s, r, "app:fork"); err != nil || e.images["app:fork"] != "sha256:a1" {
			t.Error(err, e.images)
		}
	}
	e.images["taken"] = "sha256:other"
	if _, err := d.Restore(t.Context(), tenant, "r2", s, r, "taken"); core.AsError(err).Code != core.Conflict {
		t.Error(err)
	}
	if err := d.Undo(t.Context(), tenant, "r1", r, "app:fork"); err != nil || e.images["app:fork"] != "" {
		t.Error(err)
	}
}

func TestNamesAreNoOptions(t *testing.T) {
	e := newEngine()
	d := newDriver(t, e)
	for _, target := range []string{"", "data", "volume/", "volume/-v", "volume/a b", "volume/../x", "container/--help", "image/-x", "image/a\nb", "network/x", "volume/" + strings.Repeat("a", 200)} {
		if _, err := d.Look(t.Context(), target); core.AsError(err).Code != core.InvalidInput || !strings.Contains(err.Error(), "target") {
			t.Errorf("%q: %v", target, err)
		}
	}
	if len(e.said) > 0 {
		t.Errorf("docker was asked: %v", e.said)
	}
	r := look(t, d, "volume/data")
	for _, dest := range []string{"", "-x", "a/b"} {
		if _, err := d.Restore(t.Context(), tenant, "r1", dag.Snapshot{ID: "s1"}, r, dest); core.AsError(err).Code != core.InvalidInput {
			t.Errorf("%q: %v", dest, err)
		}
	}
	if _, err := d.Look(t.Context(), "volume/nosuch"); core.AsError(err).Code != core.NotFound {
		t.Error(err)
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
	if _, err := newDriver(t, noisy{}).Look(t.Context(), "volume/data"); err == nil || !strings.Contains(err.Error(), "more than is allowed") {
		t.Error(err)
	}
}

// TestTheRealClientSaysThatNoEngineAnswers asks the docker command that is
// installed, at a place where no engine is, or finds that there is none.
func TestTheRealClientSaysThatNoEngineAnswers(t *testing.T) {
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
	if core.AsError(err).Code != core.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	t.Setenv("PATH", t.TempDir())
	if err := d.Available(t.Context()); core.AsError(err).Code != core.Unavailable || !strings.Contains(err.Error(), "no docker command") {
		t.Error(err)
	}
}

func TestUndoLeavesAnImageThatWasThereBefore(t *testing.T) {
	for name, there := range map[string]string{"another image": "sha256:users", "the same image": "sha256:a1"} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			d := newDriver(t, e)
			r := look(t, d, "image/app:1")
			got, err := d.Snapshot(t.Context(), tenant, "s1", r, nil)
			if err != nil {
				t.Fatal(err)
			}
			e.images["app:latest"] = there
			s := dag.Snapshot{ID: "s1", Method: got.Method, ExternalRef: got.Ref}
			_, err = d.Restore(t.Context(), tenant, "r1", s, r, "app:latest")
			if refused := there != "sha256:a1"; (err != nil) != refused {
				t.Fatal(err)
			}
			if err := d.Undo(t.Context(), tenant, "r1", r, "app:latest"); err != nil {
				t.Fatal(err)
			}
			if e.images["app:latest"] != there {
				t.Errorf("app:latest is %q", e.images["app:latest"])
			}
			if _, err := d.Restore(t.Context(), tenant, "r2", s, r, "app:new"); err != nil {
				t.Fatal(err)
			}
			if err := d.Undo(t.Context(), tenant, "r2", r, "app:new"); err != nil || e.images["app:new"] != "" {
				t.Errorf("app:new is %q: %v", e.images["app:new"], err)
			}
		})
	}
}
