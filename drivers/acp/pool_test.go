package acp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func script(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "script")
	expect.No(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func readPID(path string) int {
	data, _ := os.ReadFile(path)
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return n
}

// runs reports a live process whose command line names a file.
func runs(file string) bool { return len(drivertest.Naming(file)) > 0 }

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid == 0 {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// crew opens agents that share one process. Behind a wall it sees one
// directory; open agents have one each.
func crew(t *testing.T, n int, profile cell.Profile) []*stand {
	t.Helper()
	r, dir := newRuntime(t, Options{}), t.TempDir()
	var all []*stand
	for i := range n {
		a := fakeAgent(t, traits{Resume: true}, settings{Shared: true})
		a.Name, a.Dir, a.Profile = fmt.Sprintf("a%d", i), dir, string(profile)
		if profile == cell.Open {
			a.Dir = t.TempDir()
		}
		all = append(all, open(t, r, a))
	}
	return all
}

func TestEightSessionsInOneProcessGetTheirOwnAnswers(t *testing.T) {
	all := crew(t, 8, cell.Worker)
	var done []<-chan task.Outcome
	release := make(chan struct{})
	for i, s := range all {
		decision := map[bool]string{true: "approve", false: "deny"}[i%2 == 0]
		s.answer = func(ctx context.Context, _ fleet.Event) (fleet.ToolAnswer, error) {
			<-release
			return fleet.ToolAnswer{Decision: decision}, nil
		}
		done = append(done, s.start(fmt.Sprintf(`tool execute {"n":%d}`, i), fmt.Sprintf("say I am %d", i)))
	}
	for _, s := range all {
		expect.Await(t, "all ask", func() bool { return len(s.of("tool_request")) == 1 })
	}
	close(release)
	pids := map[int]bool{}
	for i, s := range all {
		out := s.wait(done[i])
		expect.True(t, out.Status == task.Succeeded && out.Text == fmt.Sprintf("I am %d", i), "agent %d: %s %q", i, out.Status, out.Text)
		expect.Has(t, string(s.of("tool_request")[0].Args), fmt.Sprintf(`{"n":%d}`, i), "agent", i, "was asked about")
		pids[s.now().PID] = true
	}
	expect.Is(t, len(pids), 1)
}

func TestASharedProcessEndsWithItsLastAgent(t *testing.T) {
	all := crew(t, 2, cell.Worker)
	for _, s := range all {
		s.ends(task.Succeeded, "", "say up")
	}
	pid := all[0].now().PID
	expect.No(t, all[0].handle.Stop(context.Background()))
	all[1].ends(task.Succeeded, "", "say still here")
	err := all[1].handle.Close()
	expect.True(t, err == nil && !alive(pid), "process %d after the last left: %v", pid, err)
}

func TestAPauseInASharedProcessWaitsForTheOthers(t *testing.T) {
	ctx := context.Background()
	all := crew(t, 2, cell.Worker)
	counted := make([]string, 2)
	var done []<-chan task.Outcome
	for i, s := range all {
		counted[i] = filepath.Join(s.handle.(*agent).place.Spec.Dir, fmt.Sprintf("n%d", i))
		done = append(done, s.start("count "+counted[i]))
		expect.Await(t, "it counts", func() bool { return readPID(counted[i]) > 0 })
	}
	expect.Says(t, all[0].handle.Pause(ctx), "shares its process", "pause while the other works")
	expect.No(t, all[1].handle.Pause(ctx), "pause of the last")
	expect.No(t, all[0].handle.Pause(ctx), "pause again")
	before := readPID(counted[0])
	expect.Is(t, readPID(counted[0]), before, "it counted from")
	for i, s := range all {
		expect.No(t, s.handle.Resume(ctx))
		expect.Await(t, "it counts on", func() bool { return readPID(counted[i]) > before })
	}
	for i, s := range all {
		s.handle.Interrupt()
		out := s.wait(done[i])
		expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	}
}

func TestAnAgentWorksBesideAFrozenProcess(t *testing.T) {
	all := crew(t, 2, cell.Worker)
	for _, s := range all {
		s.ends(task.Succeeded, "", "say up")
	}
	expect.No(t, all[0].handle.Pause(context.Background()))
	all[1].forget()
	all[1].ends(task.Succeeded, "", "say still able")
	expect.True(t, all[1].now().PID != all[0].now().PID, "it worked in the frozen process")
	all[1].heard("log", "took up the conversation")
	expect.No(t, all[0].handle.Resume(context.Background()))
	all[0].ends(task.Succeeded, "", "say back")
}

func TestACancelInASharedProcessSparesTheOthers(t *testing.T) {
	all := crew(t, 2, cell.Open) // whose a program is shows where it works
	pids := make([]string, 2)
	var done []<-chan task.Outcome
	for i, s := range all {
		dir := s.handle.(*agent).place.machine().Real()
		pids[i] = filepath.Join(dir, fmt.Sprintf("pid%d", i))
		done = append(done, s.start("chdir "+dir, "spawn "+pids[i], "hang"))
		expect.Await(t, "it has spawned", func() bool { return readPID(pids[i]) > 0 })
	}
	all[0].handle.Interrupt()
	out := all[0].wait(done[0])
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	if runs(pids[0]) || !runs(pids[1]) {
		t.Errorf("alive: %v, %v; want only the other's", runs(pids[0]), runs(pids[1]))
	}
	all[1].handle.Interrupt()
	if out := all[1].wait(done[1]); out.Status != task.Cancelled || runs(pids[1]) {
		t.Errorf("outcome %+v, left %v", out, runs(pids[1]))
	}
}
