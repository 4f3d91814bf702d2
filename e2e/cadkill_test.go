package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad/freecadtest"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// TestKillsAtAnyInstantLeaveTheAssemblyAsItIs kills the program that runs the
// scenario, or one of the processes that compute for it, at random instants,
// and has another program go on, until the kills are used up. What comes of it
// is what comes of a run that nobody disturbed: the same entries, counters and
// files, once each, and no process or directory is left. SWARMDECK_TEST_KILLS
// is how many, where somebody has more time.
func TestKillsAtAnyInstantLeaveTheAssemblyAsItIs(t *testing.T) { killAssembly(t, env.Embedded) }

func TestKillsAtAnyInstantLeaveTheAssemblyOfFreeCADAsItIs(t *testing.T) {
	freecadtest.Need(t)
	killAssembly(t, env.OCCT)
}

func killAssembly(t *testing.T, kernel string) {
	t.Parallel()
	budget, kills := 6*time.Second, 1000
	if n, err := strconv.Atoi(os.Getenv("SWARMDECK_TEST_KILLS")); err == nil {
		budget, kills = time.Hour, n
	}
	calm := newUser(t)
	calm.ok("cad", "scenario", "run", "assembly_design", "--kernel", kernel, "--out", filepath.Join(calm.home, "out"), "--wait")
	want := calm.assembled()
	deadline, killed := time.Now().Add(budget), 0
	for run := 0; killed < kills && time.Now().Before(deadline); run++ {
		r := &killer{user: newUser(t), random: rand.New(rand.NewPCG(uint64(run), 7)), deadline: deadline, left: kills - killed}
		r.assemble(kernel)
		killed += r.killed
		if got := r.assembled(); got != want {
			t.Fatalf("run %d, %d kills: got\n%s\nwant\n%s", run, r.killed, without(got, want), without(want, got))
		}
		r.clean()
	}
	t.Logf("%d kills", killed)
	expect.True(t, killed != 0, "nothing was killed")
}

// killer is a user whose programs are killed.
type killer struct {
	*user
	random   *rand.Rand
	deadline time.Time
	left     int // kills
	killed   int
}

// assemble runs the scenario to its end, by as many programs as that takes.
func (r *killer) assemble(kernel string) {
	r.t.Helper()
	temp := filepath.Join(r.home, "tmp")
	expect.No(r.t, os.Mkdir(temp, 0o700))
	r.env = append(r.env, "TMPDIR="+temp)
	r.ok("tenant", "list") // makes the first tenant
	args := []string{"cad", "scenario", "run", "assembly_design", "--kernel", kernel, "--out", filepath.Join(r.home, "out"), "--wait"}
	for {
		if code := r.disturbed(args); code >= 0 {
			if code != 0 {
				r.t.Fatalf("%v: exit %d after %d kills\n%s", args, code, r.killed, r.ok("cad", "workflow", "list"))
			}
			return
		}
		if id := field(r.ok("cad", "workflow", "list", "-o", "json"), "workflow_id"); id != "" {
			args = []string{"cad", "workflow", "wait", id}
		}
	}
}

// disturbed runs a program, kills it or what computes for it, and answers its
// exit code; -1 when it was killed itself.
func (r *killer) disturbed(args []string) int {
	r.t.Helper()
	cmd := r.command(args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	expect.No(r.t, cmd.Start())
	over := expect.Later(func() error { return cmd.Wait() })
	for {
		var pause <-chan time.Time // none: it may end in peace
		if r.left > 0 && time.Now().Before(r.deadline) {
			pause = time.After(time.Duration(r.random.IntN(700)) * time.Millisecond)
		}
		select {
		case <-over:
			if cmd.ProcessState.ExitCode() > 0 {
				r.t.Log(said.String())
			}
			return cmd.ProcessState.ExitCode()
		case <-pause:
		}
		victims := append(slices.DeleteFunc(descendants(cmd.Process.Pid), func(pid int) bool { return !computes(pid) }), cmd.Process.Pid)
		victim := victims[r.random.IntN(len(victims))]
		if syscall.Kill(victim, syscall.SIGKILL) == nil {
			r.killed, r.left = r.killed+1, r.left-1
		}
		if victim == cmd.Process.Pid {
			<-over
			return -1
		}
	}
}

// descendants are the processes that come of one.
func descendants(pid int) (all []int) {
	kids, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range kids {
		list, _ := os.ReadFile(f) // it may have ended
		for word := range strings.FieldsSeq(string(list)) {
			if kid, err := strconv.Atoi(word); err == nil {
				all = append(append(all, kid), descendants(kid)...)
			}
		}
	}
	return all
}

// computes says whether a process makes solids: a worker, or the FreeCAD of one.
func computes(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
	return bytes.Contains(line, []byte("\x00cad\x00env")) || bytes.Contains(line, []byte("server.py"))
}

// assembled tells what a run came to: each workspace, what each agent did, the
// solids and the files.
func (u *user) assembled() string {
	u.t.Helper()
	var out []string
	for _, list := range [][]string{
		{"workspace", "workspace_id", "seq", "entity_count", "solid_count", "conflict_count"},
		{"agent", "agent_id", "created_entities", "status"},
	} {
		for line := range strings.Lines(u.ok("cad", list[0], "list", "-o", "json")) {
			var record map[string]core.Raw
			expect.No(u.t, core.DecodeStored([]byte(line), &record))
			text := list[0]
			for _, name := range list[1:] {
				text += " " + string(record[name])
			}
			out = append(out, text)
		}
	}
	for id, v := range u.solids("integrator") {
		out = append(out, fmt.Sprintf("solid %s of %.9g mm³", id, v))
	}
	files := expect.Of(os.ReadDir(filepath.Join(u.home, "out")))(u.t)
	for _, f := range files {
		info := expect.Of(f.Info())(u.t)
		// Its facets depend on what its kernel made before: some bytes more or less.
		out = append(out, fmt.Sprintf("file %s, empty: %v", f.Name(), info.Size() == 0))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// without is the lines of a text that another one lacks.
func without(text, other string) string {
	lines := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return slices.Contains(lines, l) }), "\n")
}

// clean checks that the log explains the store, and that nothing is left of what
// was killed.
func (r *killer) clean() {
	r.t.Helper()
	r.ok("audit", "verify")
	r.ok("audit", "reconcile")
	expect.Await(r.t, "the end of all processes", func() bool { return len(processesOf(r.home)) == 0 })
	left, err := filepath.Glob(filepath.Join(r.home, "tmp", "*", "*"))
	expect.True(r.t, err == nil && len(left) == 0, "left in the directory for temporary files: %v, %v", left, err)
}

// processesOf are the processes whose environment speaks of a directory.
func processesOf(home string) (all []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range environs {
		if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(home)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			all = append(all, filepath.Base(filepath.Dir(f))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return all
}
