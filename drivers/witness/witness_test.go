package witness_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/git/gittest"
	driver "swarmdeck/drivers/witness"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/witness"
	"swarmdeck/expect"
)

func TestMain(m *testing.M) {
	if err := cell.BecomeSubreaper(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type world struct {
	*driver.Driver
	t   *testing.T
	dir string
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	own := expect.Of(safeopen.OwnFiles(filepath.Join(dir, "data.db")))(t)
	return &world{driver.New(driver.Options{Cells: drivertest.Cells(t, cell.Options{}), Dir: dir, Own: own}), t, dir}
}

func (w *world) at(name string) string { return filepath.Join(w.dir, name) }

func (w *world) witness(kind, name string) witness.Witness {
	return witness.Witness{TenantID: "t_a", Name: "w", Kind: kind, Path: w.at(name)}
}

// note looks like a checkpoint; drivers do not look at what they carry.
func note(n int) string {
	return "swarmdeck/t_a\n" + strconv.Itoa(n) + "\nAAAA\n\n— swarmdeck/t_a BBBB\n"
}

func (w *world) publish(to witness.Witness, n int) error {
	return w.Publish(w.t.Context(), to, witness.Line{At: time.Unix(int64(n), 0).UTC(), Checkpoint: note(n)})
}

func (w *world) held(of witness.Witness) (notes []string, err error) {
	for k, bad := range w.Held(w.t.Context(), of) {
		if bad != nil {
			return notes, bad
		}
		notes = append(notes, string(k.Note))
	}
	return notes, nil
}

func (w *world) no(err error) {
	w.t.Helper()
	expect.No(w.t, err)
}

func TestWhatWasPublishedIsReadBack(t *testing.T) {
	for _, kind := range []string{witness.File, witness.Git} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			to := w.witness(kind, "kept")
			for n := range 3 {
				w.no(w.publish(to, n))
			}
			other := to
			other.TenantID = "t_b"
			w.no(w.publish(other, 7))
			notes := expect.Of(w.held(to))(w.t)
			got := strings.Join(notes, "|")
			want := map[string]string{witness.File: note(0) + "|" + note(1) + "|" + note(2) + "|" + note(7), witness.Git: note(2) + "|" + note(1) + "|" + note(0)}[kind]
			expect.Is(t, got, want)
		})
	}
}

func TestALineThatWasCutShortSpoilsNoOther(t *testing.T) {
	w := newWorld(t)
	to := w.witness(witness.File, "kept")
	w.no(w.publish(to, 1))
	f, err := os.OpenFile(to.Path, os.O_WRONLY|os.O_APPEND, 0)
	w.no(err)
	_, err = f.WriteString(`{"at":"2026-01-01T00:00:00Z","check`)
	w.no(errors.Join(err, f.Close()))
	w.no(w.publish(to, 2))
	notes, err := w.held(to)
	expect.True(t, err == nil && len(notes) == 2 && notes[1] == note(2), "%q %v", notes, err)
}

func TestAGitWitnessCanBeFetchedFrom(t *testing.T) {
	w := newWorld(t)
	w.no(os.Mkdir(w.at("kept"), 0o700)) // empty is as good as not there
	to := w.witness(witness.Git, "kept")
	w.no(w.publish(to, 1))
	w.no(w.publish(to, 2))
	out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "--branch", "t_a", to.Path, w.at("clone")).CombinedOutput()
	expect.No(t, err, out)
	text, err := os.ReadFile(filepath.Join(w.at("clone"), "checkpoint"))
	expect.True(t, err == nil && string(text) == note(2), "%q %v", text, err)
}

func TestARepositoryOfSomebodyElseIsRefusedAndRunsNothing(t *testing.T) {
	w := newWorld(t)
	canary := gittest.NewCanary(t)
	made := w.witness(witness.Git, "made")
	w.no(w.publish(made, 1))
	canary.Infest(made.Path, made.Path)
	theirs := w.witness(witness.Git, "theirs")
	out, err := exec.CommandContext(t.Context(), "git", "init", "-q", theirs.Path).CombinedOutput()
	expect.No(t, err, out)
	w.no(os.Mkdir(w.at("full"), 0o700))
	w.no(os.WriteFile(w.at("full/x"), nil, 0o600))
	for _, to := range []witness.Witness{made, theirs, w.witness(witness.Git, "full")} {
		if err := w.publish(to, 2); err == nil || !strings.Contains(err.Error(), "no repository that a witness made") {
			t.Errorf("%s: %v", to.Path, err)
		}
		_, err = w.held(to)
		expect.Fails(t, err, to.Path)
	}
	ran := canary.Ran()
	expect.True(t, len(ran) == 0, "ran %v", ran)
}

func TestNoWitnessIsKeptInTheEnginesOwnFilesOrThroughALink(t *testing.T) {
	w := newWorld(t)
	w.no(os.WriteFile(w.at("data.db"), []byte("data"), 0o600))
	w.no(os.MkdirAll(w.at("data.db.run/spill"), 0o700))
	w.no(os.Link(w.at("data.db"), w.at("hard")))
	w.no(os.Symlink("data.db", w.at("soft")))
	w.no(os.WriteFile(w.at("x"), nil, 0o600))
	w.no(os.Symlink("x", w.at("link")))
	for _, kind := range []string{witness.File, witness.Git} {
		for _, name := range []string{"data.db", "data.db.key", "data.db.run/spill/x", "hard", "soft", "link", "nowhere/x"} {
			expect.Fails(t, w.publish(w.witness(kind, name), 1), kind, name)
		}
	}
	expect.Is(t, core.AsError(w.publish(w.witness(witness.File, "data.db"), 1)).Code, core.Denied)
	text, _ := os.ReadFile(w.at("data.db"))
	expect.True(t, string(text) == "data", "the data file is now %q", text)
}

func TestACommandGetsTheLineOfAFile(t *testing.T) {
	w := newWorld(t)
	to := witness.Witness{TenantID: "t_a", Name: "w", Kind: witness.Command, Command: []string{"sh", "-c", "cat >> kept"}}
	w.no(w.publish(to, 1))
	w.no(w.publish(to, 2))
	notes, err := w.held(w.witness(witness.File, "kept"))
	expect.True(t, err == nil && len(notes) == 2, "%q %v", notes, err)
	to.Command = []string{"sh", "-c", "echo full >&2; exit 3"}
	expect.Says(t, w.publish(to, 3), "the command exited with status 3: full")
	to.Command = []string{"no-such-program"}
	expect.Fails(t, w.publish(to, 3), "a program that is not there took it")
}
