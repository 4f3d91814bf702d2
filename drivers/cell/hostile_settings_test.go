package cell

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
)

// TestAWorkerIsHeldInEverySetting tries the attacks as others than this process
// and where the system gives less.
func TestAWorkerIsHeldInEverySetting(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as an ordinary one already")
	}
	for _, c := range celltest.Settings() {
		t.Run(c.Name, func(t *testing.T) {
			said := inSetting(t, c, "TestAWorkerIsHeld$/^(all|no_scoped_signals)$")
			switch {
			case !strings.Contains(said, "--- PASS: TestAWorkerIsHeld/all"):
				t.Fatal(said)
			case strings.Contains(said, "name spaces: true") != c.Spaces:
				t.Errorf("not what was meant:\n%s", said)
			}
			for line := range strings.Lines(said) {
				if strings.Contains(line, "attempts;") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// inSetting runs tests of this program in a setting, and returns what they say.
func inSetting(t *testing.T, c celltest.Setting, tests string) (said string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "h") // a socket's path is short
	expect.No(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	celltest.Passable(t, dir)
	program := filepath.Join(dir, "cell.test")
	copyTo(t, program)
	tmp := filepath.Join(dir, "t")
	expect.No(t, os.Mkdir(tmp, 0o777))
	expect.No(t, os.Chown(tmp, c.Owner(), c.Owner()))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, program, "-test.run", tests, "-test.v", "-test.timeout", "9m")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp}, &c.Attr
	if c.Refuse {
		cmd.Env = append(cmd.Env, celltest.WithoutSpaces+"=1")
	}
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "can't be had"), err != nil && forbids(err) && len(out) == 0:
		t.Skipf("this system can't be made one: %v %s", err, out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// copiedTo puts the attacker where a worker may run it: the test's own may lie where only
// root comes.
func copiedTo(t testing.TB) string {
	exe := filepath.Join(yard(t), "attacker")
	copyTo(t, exe)
	return exe
}

func copyTo(t testing.TB, path string) {
	t.Helper()
	program := "/proc/self/exe"
	if celltest.Race {
		program = expect.Of(celltest.Attacker())(t)
	}
	celltest.Copy(t, program, path)
}
