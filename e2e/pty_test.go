package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/expect"
)

func (u *user) set(vars ...string) *user {
	u.env = append(u.env, vars...)
	return u
}

// project is a directory for the example agents to read.
func (u *user) project() {
	u.t.Helper()
	for name, text := range map[string]string{"main.go": "package main\n\n// TODO: say hello\nfunc main() {}\n", "README": "A small project.\n"} {
		expect.No(u.t, os.WriteFile(filepath.Join(u.home, name), []byte(text), 0o600))
	}
}

func TestTheFirstVisitInATerminal(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ w, h int }{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size.w, size.h), func(t *testing.T) {
			if testing.Short() && size.w > 80 {
				t.Skip("once is enough")
			}
			t.Parallel()
			u := newUser(t).set("TERM=xterm-256color")
			u.project()
			visit(t, u, size.w, size.h)
		})
	}
}

// visit is what examples/scripts/walk.txtar does, by hand.
func visit(t *testing.T, u *user, w, h int) {
	s := u.sit(w, h, "demo", "--dir", "kept")
	var r tape
	s.see(`working`)

	// The header leads to the approval; it is read, and denied.
	s.see(`1 needs? you`)
	s.see(`3 idle`)
	r.shot(s, "Four agents; one needs you. i goes there.")
	s.press("i")
	s.see(`would +fs.write swarmdeck-notes.txt`)
	s.see(`paths +swarmdeck-notes.txt`)
	s.see(`armed`)
	r.shot(s, "Read what would happen. Nothing does before you answer.")
	s.press(pageDown)
	s.see(`new file`)
	expect.True(t, !strings.Contains(s.screen(), "mind "), "a warning without words\n%s", s.screen())
	r.shot(s, "The change, line by line. An answer holds for exactly this.")
	s.press(enter)
	s.press("x")
	s.see(`Reason to deny`)
	s.press("not here")
	s.see(`not here`)
	r.shot(s, "x denies, with a reason that the agent gets.")
	s.press(enter)
	s.see(`denied`)
	s.gone(`1 needs? you`)
	s.see(`4 idle`)

	// It is dispatched again, and approved with other arguments.
	s.press(":agent assign scribe 'once more'" + enter)
	s.see(`1 needs? you`)
	s.press("i")
	s.see(`approval . open`)
	s.see(`armed`)
	s.press("e")
	s.see(`Edit the arguments`)
	r.shot(s, "e edits what it asked for, and then approves that.")
	s.press(down + home + ctrlK + `  "path": "notes.txt",` + down + home + ctrlK + `  "content": "edited by hand\n"` + ctrlX)
	s.see(`sure\?`)
	s.rests(400 * time.Millisecond) // a question is dead at first
	s.press("y")
	s.gone(`1 needs? you`)
	expect.Await(t, "note that was approved", func() bool {
		text, _ := os.ReadFile(filepath.Join(u.home, "notes.txt"))
		return string(text) == "edited by hand\n"
	})

	// The agent's log, a pause, and on.
	s.press("1g/scribe" + enter + enter)
	s.see(`Wrote 15 bytes to notes.txt`)
	r.shot(s, "What the agent did, and who allowed it, is in a signed log.")
	s.rests(400 * time.Millisecond) // and so is a row that has just come under the cursor
	s.press("p")
	s.see(`paused`)
	s.press("p")
	s.see(`idle`)

	// The emergency stop and its end.
	s.press("EE")
	s.see(`EMERGENCY STOP`)
	r.shot(s, "E E freezes everything at once; again to go on.")
	s.press("j") // the same key again at once would be a repeat
	s.press("EE")
	s.see(`Reason to thaw`)
	s.press("all is well" + enter)
	s.gone(`EMERGENCY STOP`)
	if w == 80 {
		r.ends(t, w, h)
	}

	// Leave, and find everything again.
	if code := s.leaves(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.screen())
	}
	restored(t, s)
	data := filepath.Join(u.home, "kept", "demo.db")
	s = u.sit(w, h, "--data", data)
	s.see(`scribe`)
	s.press(":approval list" + enter)
	s.see(`approved`)
	s.see(`denied`)
	code := s.leaves()
	expect.Must(t, code == 0, "exit code %d", code)
	u.ok("--data", data, "audit", "verify")
	u.ok("--data", data, "audit", "reconcile")
}

// restored checks that a terminal is left as it was found.
func restored(t *testing.T, s *seat) {
	t.Helper()
	out := s.output()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1004h": "\x1b[?1004l"} {
		expect.True(t, !strings.Contains(out, on) || strings.LastIndex(out, on) <= strings.LastIndex(out, off), "%q is not undone", on)
	}
}

func TestAnyTerminalGetsWhatItCanShow(t *testing.T) {
	u := newUser(t)
	u.ok("agent", "create", "looker", "--project", "demo", "--role", "reader", "--", "true")
	type place struct {
		term, noColor, lang string
		w, h                int
	}
	var places []place
	for _, term := range []string{"xterm-256color", "screen-256color", "tmux-256color", "dumb", ""} {
		for _, noColor := range []string{"", "1", "yes"} {
			for _, lang := range []string{"C", "C.UTF-8"} {
				places = append(places, place{term, noColor, lang, 80, 24})
			}
		}
		places = append(places, place{term, "", "C.UTF-8", 40, 10}, place{term, "1", "C", 200, 50})
	}
	if testing.Short() {
		places = []place{places[1], places[2], places[len(places)-1]}
	}
	whole := expect.Of(os.ReadFile(u.data()))(t)
	for _, p := range places {
		t.Run(fmt.Sprintf("TERM=%s NO_COLOR=%s LANG=%s %dx%d", p.term, p.noColor, p.lang, p.w, p.h), func(t *testing.T) {
			t.Parallel()
			u := newUser(t).set("TERM="+p.term, "LANG="+p.lang)
			if p.noColor != "" {
				u.set("NO_COLOR=" + p.noColor)
			}
			data := filepath.Join(u.home, "a.db")
			expect.No(t, os.WriteFile(data, whole, 0o600))
			if p.term == "" || p.term == "dumb" {
				plainLines(t, u, u.sit(p.w, p.h, "--data", data))
				return
			}
			s := u.sit(p.w, p.h, "--data", data)
			if p.w < 60 {
				s.see(`needs 60x15 \(now 40x10\)`)
			} else {
				s.see(`looker`)
				s.press("2")
				s.see(`tasks 0`)
			}
			expect.Is(t, s.leaves(), 0, "exit code")
			restored(t, s)
			out := s.output()
			has := colourSGR.MatchString(out)
			expect.True(t, has == (p.noColor == "") || p.w < 60, "colours: %v", has)
			text := controls.ReplaceAllString(out, "")
			at := strings.IndexFunc(text, func(r rune) bool { return r > '~' })
			want := p.lang == "C"
			expect.True(t, at < 0 == want || p.w < 60, "only ASCII: %v, want %v: %q", at < 0, want, text[max(0, at-20):max(0, min(at+40, len(text)))])
		})
	}
}

// plainLines holds a dumb terminal to lines of text.
func plainLines(t *testing.T, u *user, s *seat) {
	s.see(`swarmdeck in plain lines`)
	s.press("agent list\n")
	s.see(`looker`)
	s.press("task dispatch --kind exec.run --input '{\"argv\":[\"rm\",\"-r\",\"x\"]}'\n")
	s.until("an announcement", func() bool { return strings.Contains(s.output(), "state: blocked; type answer") })
	s.press("answer\n")
	s.until("choices", func() bool { return strings.Contains(s.output(), "type a number:") })
	s.press("\n")
	s.until("left open", func() bool { return strings.Contains(s.output(), "left open") })
	s.press("answer\n3\nnot today\n")
	s.until("the answer", func() bool { return strings.Contains(s.output(), "state: denied; by "+u.name()+": not today") })
	s.press("\x04")
	expect.Is(t, s.ends(), 0, "exit code")
	if i := strings.IndexByte(s.output(), 0x1b); i >= 0 {
		t.Errorf("an escape sequence: %q", s.output()[i:min(len(s.output()), i+40)])
	}
}

func TestAccessibleModeAndPipesSpeakPlainLines(t *testing.T) {
	t.Parallel()
	u := newUser(t).set("TERM=xterm-256color")
	s := u.sit(80, 24, "--accessible")
	plainLinesOnly := func(out string) {
		t.Helper()
		expect.True(t, !strings.Contains(out, "\x1b") && !strings.ContainsAny(out, "│┌─"), "not plain: %q", out)
	}
	s.see(`plain lines: accessible mode`)
	s.press("tenant list\n")
	s.see(`t_default`)
	s.press("quit\n")
	expect.Is(t, s.ends(), 0, "exit code")
	plainLinesOnly(s.output())

	cmd := u.command()
	cmd.Stdin = strings.NewReader(strings.Join([]string{
		`task dispatch --kind exec.run --input '{"argv":["echo","hi"]}' --wait`,
		`task dispatch --kind exec.run --input '{"argv":["rm","-r","x"]}'`,
		`answer`, `1`, ``, // approve, but give no reason
		`answer`, `9`, // no such choice
		`answer`, `4`, `{"argv":["echo","harmless"],"dir":"` + u.home + `"}`, `it is now`,
		`nonsense`, `'open`, `estop on --reason fire`,
	}, "\n"))
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 { // of the first line that failed
		t.Fatalf("exit %d: %v: %s", code, err, out)
	}
	plainLinesOnly(string(out))
	for _, want := range []string{
		"ended; state: succeeded; echo hi", "waits: run rm -r x in", "1. approve exactly this, once",
		"reason to approve a high risk", "left open", `"9" is none of the choices; left open`, "state: approved; by " + u.name() + ": it is now",
		`unknown command "nonsense"`, "line ends inside ' quotes", "emergency stop: on; by " + u.name() + ": fire",
	} {
		expect.Has(t, string(out), want, "no", "in", out)
	}
}

func TestAScriptIsPlayedVisibly(t *testing.T) {
	t.Parallel()
	u := newUser(t).set("TERM=xterm-256color")
	path := filepath.Join(u.home, "seen.txtar")
	text := "task dispatch --kind exec.run --input '{\"argv\":[\"echo\",\"apple\"]}' --wait\ncockpit 80x24\nawait screen /fleet/\nkey 2\nawait screen /apple/\n"
	expect.No(t, os.WriteFile(path, []byte(text), 0o600))
	s := u.sit(100, 30, "--script", path, "--show")
	s.see(`> task dispatch`)
	s.see(`fleet 0`)
	s.see(`tasks 1`)
	s.see(`seen.txtar: ok`)
	code := s.ends()
	expect.True(t, code == 0 && colourSGR.MatchString(s.output()), "exit code %d", code)
}

func TestAStormOfSizesLeavesTheScreenRight(t *testing.T) {
	t.Parallel()
	u := newUser(t).set("TERM=xterm-256color")
	u.ok("agent", "create", "looker", "--project", "demo", "--role", "reader", "--", "true")
	s := u.sit(80, 24)
	s.see(`1 idle · queue 0`)
	s.see(`○ idle +looker`)
	settle := regexp.MustCompile(` *\d+[smh]`)
	s.rests(500 * time.Millisecond) // what is told for a moment is over
	before, after := settle.ReplaceAllString(s.screen(), ""), ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("before:\n%s\nafter:\n%s", before, after)
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		s.resize(1+rng.IntN(220), 1+rng.IntN(70))
		if rng.IntN(4) == 0 {
			s.press([]string{"j", "2", "1", "?", esc, "/"}[rng.IntN(6)])
		}
		if rng.IntN(8) == 0 {
			s.rests(time.Duration(rng.IntN(50)) * time.Millisecond)
		}
	}
	s.resize(80, 24)
	// Whatever the keys opened is closed again, once all of them have come;
	// bytes after esc would be its.
	s.until("the screen from before", func() bool {
		for _, key := range []string{esc, esc, esc, "1"} {
			s.press(key)
			s.rests(150 * time.Millisecond)
		}
		after = settle.ReplaceAllString(s.screen(), "")
		return after == before
	})
	expect.Is(t, s.leaves(), 0, "exit code")
}

// alive reports whether a process runs.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest != "" && rest[0] != 'Z'
}

// sleeper dispatches a long command from the cockpit and returns its process,
// which knows itself by another number.
func sleeper(t *testing.T, u *user, s *seat) int {
	t.Helper()
	path := filepath.Join(u.home, "pid")
	s.see(`fleet 0`)
	s.press(`:task dispatch --kind exec.run --input '{"argv":["sh","-c","echo >` + path + `; sleep 600; :"]}'` + enter)
	var pids []int
	s.until("one running command", func() bool { // one that has just forked is two
		if _, err := os.Stat(path); err != nil {
			return false
		}
		pids = drivertest.Naming(path)
		return len(pids) == 1
	})
	return pids[0]
}

func TestAHangUpEndsTheCockpitAndItsWorkInOrder(t *testing.T) {
	t.Parallel()
	u := newUser(t).set("TERM=xterm-256color")
	s := u.sit(80, 24)
	pid := sleeper(t, u, s)
	s.tty.Close() // the terminal is gone: SIGHUP
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait()
	expect.True(t, !s.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(), "it did not end by itself: %s", s.cmd.ProcessState)
	expect.True(t, !alive(pid), "its command goes on")
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
	u.ok("store", "check")
}

func TestAfterKillNothingIsLost(t *testing.T) {
	t.Parallel()
	u := newUser(t).set("TERM=xterm-256color")
	s := u.sit(80, 24)
	pid := sleeper(t, u, s)
	expect.No(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	u.ok("store", "check")
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
	out := u.ok("task", "list", "-o", "json")
	expect.True(t, field(out, "task_id") != "", "the task is lost: %s", out)
	// The next cockpit ends what the dead one left behind, and runs it anew.
	expect.No(t, os.Remove(filepath.Join(u.home, "pid")))
	s = u.sit(80, 24)
	s.see(`queue`)
	expect.Await(t, "end of the command that was left", func() bool { return !alive(pid) })
	s.press("2")
	s.see(`running`)
	if code := s.leaves(); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.screen())
	}
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}
