package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// play writes a script and runs it.
func (u *user) play(text string, args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	path := filepath.Join(u.home, "test.txtar")
	expect.No(u.t, os.WriteFile(path, []byte(text), 0o600))
	return u.run(append([]string{"--script", path}, args...)...)
}

func TestAFailedExpectationSaysWhereWhatAndShowsTheScreen(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"a screen that never comes": {
			"# first things\nversion\n# look for it\ncockpit 80x24\nawait -t 100ms screen /no such words/\n",
			[]string{"FAIL .*/test.txtar:5: await screen", "expected: a match for /no such words/ within 100ms", "phase: look for it", "screen:\n  | t_default", "no agents yet"},
		},
		"a screen that must not be": {
			"cockpit\nawait screen /fleet/\n! screen /fleet/\n",
			[]string{"test.txtar:3: screen", "expected: no match for /fleet/", `actual: it matches "fleet"`},
		},
		"a cell": {
			"cockpit\nawait screen /fleet/\ncell 1,1 role=danger\n",
			[]string{"test.txtar:3: cell 1,1", "expected: role=danger", "actual: role=header"},
		},
		"a command that fails": {
			"# try\ntask show nonsense\n",
			[]string{"test.txtar:2: expected: the command succeeds\nactual: exit code 2", "phase: try", `"nonsense" is not allowed`},
		},
		"a command that must fail": {
			"! version\n",
			[]string{"test.txtar:1: expected: the command fails\nactual: it succeeded"},
		},
		"output": {
			"version\nstdout nonsense\n",
			[]string{"test.txtar:2: no match for `nonsense` found in stdout", `\[stdout\]\nswarmdeck`},
		},
		"an exit code": {
			"? task show nonsense\nexit 1\n",
			[]string{"test.txtar:2: exit code\nexpected: 1\nactual: 2"},
		},
		"a task that ends otherwise": {
			`task dispatch --kind exec.run --input '{"argv":["false"]}' -o json` + "\ncapture T task_id\nawait task $T status=succeeded\n",
			[]string{"test.txtar:3: await task", "expected: status=succeeded", "it is over: status=failed error_code=exit_nonzero"},
		},
		"a picture": {
			"cockpit 60x15\nawait screen /fleet/\nsnap x\n-- want/x.screen --\nnothing\n",
			[]string{"test.txtar:3: snap x", "expected and actual differ", `-nothing`, `\+   no agents`},
		},
		"no cockpit":     {"key j\n", []string{"test.txtar:1: there is no cockpit"}},
		"left":           {"cockpit\nkey ctrl+c\nawait left\nkey j\n", []string{"test.txtar:4: the cockpit has been left"}},
		"a key":          {"cockpit\nkey hyper+x\n", []string{"test.txtar:2: key \"hyper.x\""}},
		"a size":         {"cockpit 80\n", []string{"size: .*WIDTHxHEIGHT"}},
		"no approval":    {"await -t 50ms approval 2\n", []string{"expected: 2 open within 50ms\nactual: 0 open"}},
		"no such field":  {"version -o json\ncapture V nothing\n", []string{"expected: JSON with the field nothing", "actual: .*version"}},
		"cmp":            {"exec echo a\ncmp stdout b\n-- b --\nb\n", []string{"stdout and b differ", `-a\n\+b`}},
		"an unfit await": {"await forever\n", []string{"usage: await"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := u.play(c.script)
			expect.Is(t, code, 1, "exit code")
			for _, want := range c.want {
				expect.True(t, regexp.MustCompile(want).MatchString(stderr), "no %q in:\n%s", want, stderr)
			}
		})
	}
}

func TestAScriptThatCannotBeRunIsAUsageMistake(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	for name, c := range map[string]struct {
		script string
		args   []string
		want   string
	}{
		"unknown word":       {"version\nfrobnicate x\n", nil, `test.txtar:2: unknown word "frobnicate"`},
		"after a condition":  {"[unix] ? frobnicate\n", nil, `test.txtar:1: unknown word "frobnicate"`},
		"known to tests":     {"[short] version\n", nil, `[short]: is known to tests only`},
		"a show on no tty":   {"version\n", []string{"--show"}, "needs a terminal"},
		"a file not there":   {"version\n", []string{"--script", "nowhere.txtar"}, "nowhere.txtar"},
		"update from stdin":  {"version\n", []string{"--script", "-", "--update"}, "can't be rewritten"},
		"nothing was run":    {"task dispatch --kind exec.run --input {}\nfrobnicate\n", nil, "test.txtar:2"},
		"flags without file": {"", []string{"--script", "", "--update"}, "--update belongs to --script"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := u.play(c.script, c.args...)
			expect.True(t, code == 2 && strings.Contains(stderr, c.want) && stdout == "",
				"exit code %d, stdout %q, stderr %q; want 2 and %q", code, stdout, stderr, c.want)
		})
	}
}

func TestAScriptRunsOnAFreshFileUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	code, _, stderr := u.play("tenant create t_script\n")
	expect.Must(t, code == 0 && strings.Contains(stderr, "a world of its own"), "exit code %d: %s", code, stderr)
	expect.Fails(t, expect.Fault(os.Stat(u.data())), "a script without --data made the user's data file")
	data := filepath.Join(u.home, "own.db")
	for range 2 {
		code, _, stderr := u.play("? tenant create t_script\ntenant list\nstdout t_script\n", "--data", data)
		expect.Must(t, code == 0 && !strings.Contains(stderr, "a world of its own"), "exit code %d: %s", code, stderr)
	}
	code, stdout, stderr := u.run("tenant", "list", "--data", data)
	expect.True(t, code == 0 && strings.Contains(stdout, "t_script"), "exit code %d: %s%s", code, stdout, stderr)
	u.env = append(u.env, "SWARMDECK_DATA="+data, "SWARMDECK_TENANT=t_other")
	code, _, stderr = u.play("? tenant create t_other\nsession create\n")
	expect.Must(t, code == 0, "exit code %d: %s", code, stderr)
	code, stdout, stderr = u.run("session", "list", "--tenant", "t_other")
	expect.True(t, code == 0 && strings.Contains(stdout, "se_"), "exit code %d: %s%s", code, stdout, stderr)
}

func TestUpdateWritesTheScreensOfAScript(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	text := "# snap\ncockpit 60x15\nawait screen /fleet/\nawait quiet\nsnap empty\n-- other --\nstays\n"
	code, _, stderr := u.play(text, "--update")
	expect.Must(t, code == 0, "exit code %d: %s", code, stderr)
	got := expect.Of(os.ReadFile(filepath.Join(u.home, "test.txtar")))(t)
	if s := string(got); !strings.HasPrefix(s, text) || !strings.Contains(s, "-- want/empty.screen --\n   no agents") || !strings.Contains(s, "~ roles\nHHHH") {
		t.Fatalf("the script is now:\n%s", s)
	}
	code, _, stderr = u.play(string(got))
	expect.True(t, code == 0, "exit code %d: %s", code, stderr)
}

func TestAScriptComesFromStdinToo(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	cmd := u.command("--script", "-")
	cmd.Stdin = strings.NewReader("# piped\nversion\nstdout nonsense\n")
	out, err := cmd.CombinedOutput()
	expect.True(t, err != nil && cmd.ProcessState.ExitCode() == 1 && strings.Contains(string(out), "FAIL stdin:3: no match"), "%v: %s", err, out)
}

func TestTheVerdictIsJSONWhenAskedFor(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	code, stdout, _ := u.play("version\n", "-o", "json")
	expect.True(t, code == 0 && strings.Contains(stdout, `"ok":true`), "exit code %d: %s", code, stdout)
	code, _, stderr := u.play("# here\n! version\n", "-o", "json")
	expect.True(t, code == 1 && strings.Contains(stderr, `"phase":"here"`) && strings.Contains(stderr, `"line":"2"`), "exit code %d: %s", code, stderr)
}

func TestAnInterruptedScriptCleansUp(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	tmp := t.TempDir()
	u.env = append(u.env, "TMPDIR="+tmp)
	path := filepath.Join(u.home, "long.txtar")
	text := `task dispatch --kind exec.run --input '{"argv":["sleep","600"]}'` + "\nexec touch $HERE/running\nawait -t 600s approval\n"
	expect.No(t, os.WriteFile(path, []byte(text), 0o600))
	cmd := u.command("--script", path)
	expect.No(t, cmd.Start())
	expect.Await(t, "start of the script", func() bool { _, err := os.Stat(filepath.Join(u.home, "running")); return err == nil })
	expect.No(t, cmd.Process.Signal(syscall.SIGTERM))
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	cmd.Wait() //nolint:errcheck // its exit code is looked at
	expect.Is(t, cmd.ProcessState.ExitCode(), 130, "exit code")
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
}
