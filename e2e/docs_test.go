package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// pages are what users read.
func pages(t *testing.T) []string {
	papers := expect.Of(filepath.Glob("docs/*.md"))(t)
	return append(papers, "README.md")
}

// blocks are the blocks of a kind in a page.
func blocks(t *testing.T, page, kind string) (all []string) {
	text := expect.Of(os.ReadFile(page))(t)
	for _, m := range regexp.MustCompile("(?ms)^```"+kind+"\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}

// TestExamplesOfThePapersRun plays what the papers show as scripts.
func TestExamplesOfThePapersRun(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range pages(t) {
		for _, script := range blocks(t, page, "txtar") {
			found++
			code, stdout, stderr := newPlayer(t).play(script)
			expect.True(t, code == 0, "%s:\n%s\nexit code %d\n%s%s", page, script, code, stdout, stderr)
		}
	}
	expect.True(t, found >= 5, "only %d examples", found)
}

// untried are lines that are not for a test: they take the terminal, never end,
// change this machine, or want what is elsewhere.
var untried = regexp.MustCompile(`^(\./)?swarmdeck *(#|$)|^swarmdeck (demo|serve|attach|mcp( --http| *#)|bus tail|cad workflow retry)|sudo |` +
	`^(ssh|make|git|cd|go|sha256sum|tar) |^CODER_SESSION_TOKEN|--runtime coder|^swarmdeck policy`)

// wanted are the commands that tell what stands for an id in a line.
var wanted = map[string][]string{
	"TASK": {"task", "list"}, "APPROVAL": {"approval", "list", "--open"}, "SESSION": {"session", "list"}, "EVENT": {"audit", "list"},
}

// TestLinesOfThePapersRun has a shell run the lines that the papers show, each block
// beside an engine of its own.
func TestLinesOfThePapersRun(t *testing.T) {
	tried := 0
	for _, page := range pages(t) {
		for i, block := range blocks(t, page, "sh") {
			lines := commands(block)
			tried += len(lines)
			if len(lines) == 0 {
				continue
			}
			t.Run(fmt.Sprint(page, " ", i+1), func(t *testing.T) {
				t.Parallel()
				u := newReader(t)
				for _, line := range lines {
					if strings.HasSuffix(line, "elsewhere:\n") { // it waits for an answer, which the next lines give
						u.leave(u.shell(line))
						expect.Await(t, "its question", func() bool { return u.ok("approval", "list", "--open") != "" })
						continue
					}
					out, err := u.shell(u.filled(line)).CombinedOutput()
					expect.Must(t, err == nil || strings.HasPrefix(line, "swarmdeck doctor"), "%s\n%v\n%s", line, err, out)
				}
			})
		}
	}
	expect.True(t, tried >= 50, "only %d lines", tried)
}

// leave has a command go on by itself, at most until the test ends.
func (u *user) leave(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	expect.No(u.t, cmd.Start())
	u.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

// commands are the lines of a block that are tried; a here-document is one.
func commands(block string) (all []string) {
	var here string
	for line := range strings.Lines(block) {
		switch {
		case here != "":
			all[len(all)-1] += line
			if strings.TrimSpace(line) == here {
				here = ""
			}
		case untried.MatchString(line):
		default:
			all = append(all, line)
			if _, end, is := strings.Cut(line, "<<'"); is {
				here = strings.TrimRight(end, "'\n")
			}
		}
	}
	return all
}

// reader is a user who tries what a page says, with the files and programs that it
// speaks of.
func newReader(t *testing.T) *user {
	u := newPlayer(t)
	u.set("PATH=" + u.home + ":" + filepath.Join(u.home, "bin") + ":" + os.Getenv("PATH"))
	_, bob := pair(t, 1)
	_, ann := pair(t, 2)
	files := map[string]string{"bob.pub": bob, "ann.pub": ann, "key.txt": "not a real one", "srv/app/.env": "A=b", "srv/out/x": "", "srv/audit/x": "", "go/src/shared/x": "", "go/pkg/mod/x": "", ".cache/go-build/x": "", ".gemini/x": "", "notes/new/x": ""}
	for _, program := range []string{"gemini", "claude", "my-agent", "mcp-server-filesystem", "notes-mcp", "desktop-mcp"} {
		files["bin/"+program] = "#!/bin/sh\nexec cat\n"
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(u.home, name)
		expect.No(t, cmp.Or(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(files[name]), 0o700)))
	}
	root, err := os.Getwd()
	if err == nil {
		err = os.Symlink(filepath.Join(root, "examples"), filepath.Join(u.home, "examples"))
	}
	expect.No(t, err)
	u.daemon("serve")
	return u
}

func (u *user) shell(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir, cmd.Env = u.home, u.env
	return cmd
}

// filled puts the newest of each kind where a line has a word for its id. What is
// not there yet is made.
func (u *user) filled(line string) string {
	u.t.Helper()
	line = strings.ReplaceAll(line, "/srv/", filepath.Join(u.home, "srv")+"/")
	if strings.HasPrefix(line, "swarmdeck cad view ws_main") {
		if code, _, _ := u.run("cad", "view", "ws_main"); code != 0 {
			u.ok("cad", "scenario", "run", "assembly_design", "--wait")
		}
	}
	return regexp.MustCompile(`\b(TASK|APPROVAL|SESSION|EVENT)\b`).ReplaceAllStringFunc(line, func(word string) string {
		id := strings.ToLower(word) + "_id"
		newest := func() string { return field(u.ok(append(wanted[word], "--page-size", "1", "-o", "json")...), id) }
		if newest() == "" {
			u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["date"]}`)
		}
		return newest()
	})
}
