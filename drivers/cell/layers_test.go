package cell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

func TestLayersTellWhatHoldsARun(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		dir := yard(t)
		for _, profile := range []Profile{Worker, Reader, Open} {
			p := start(t, s, Spec{Argv: []string{"true"}, Dir: dir, Wall: Wall{Profile: profile}})
			p.CloseIO()
			expect.No(t, p.Stop(Grace{}))
			got := map[string]Layer{}
			for _, l := range s.Layers(t.Context(), profile, dir) {
				got[l.Name] = l
				expect.True(t, l.Detail != "", "%s: %s says nothing", profile, l.Name)
			}
			expect.True(t, got["run"].OK, "%s: %+v", profile, got["run"])
			for _, name := range []string{layerSpaces, layerLandlock, layerSeccomp} {
				l, told := got[name]
				if name != layerSpaces && profile == Open {
					expect.True(t, !told, "an open run has %s: %+v", name, l)
					continue
				}
				if missing := slices.Contains(p.Missing(), name); l.OK == missing || l.Needed != (profile != Open) {
					t.Errorf("%s: %+v, the run lacks %v", profile, l, p.Missing())
				}
			}
			hidden := strings.Contains(got[layerSpaces].Detail, "sees names and sizes of hidden files")
			expect.True(t, hidden == (profile != Open && s.without(layerSpaces)), "%s: %+v", profile, got[layerSpaces])
			expect.True(t, got[layerSpaces].OK != s.without(layerSpaces), "%s: %+v", profile, got[layerSpaces])
			expect.True(t, !s.without(layerCgroup) || !got[layerCgroup].OK, "%s: %+v", profile, got[layerCgroup])
			expect.True(t, profile == Open || got["no_new_privs"].OK, "%s: %+v", profile, got["no_new_privs"])
			_, told := got[layerIDMap]
			expect.True(t, told == (profile != Open && os.Geteuid() == 0), "%s: idmapped mounts told: %t", profile, told)
		}
	})
}

func TestLayersNameTheErrorOfARunThatCantBeStarted(t *testing.T) {
	s := newSupervisor(t)
	all := s.Layers(t.Context(), Worker, "/no/such/directory")
	for _, l := range all {
		expect.True(t, !l.Needed || !l.OK, "%+v", l)
	}
	expect.Has(t, all[0].Detail, "/no/such/directory", all[0])
}

func TestAnOrdinaryUserHasNameSpaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	if why, _ := refusedSpaces(); why != "" {
		t.Skip(why)
	}
	dir, err := os.MkdirTemp("", "ordinary") // t.TempDir is root's alone
	expect.No(t, err)
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.WriteFile(program, data, 0o755), os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "work"), 0o755),
			os.Chown(filepath.Join(dir, "work"), 65534, 65534))
	}
	expect.No(t, err)
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = filepath.Join(dir, "work"), []string{"CELL_TEST_LAYERS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	expect.True(t, err == nil && len(out) == 0, "%v: what does not hold:\n%s", err, out)
}
