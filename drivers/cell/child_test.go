package cell

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/drivers/pipe"
	"swarmdeck/expect"
)

// parent starts a child that writes its number to the file up, and waits to be
// killed.
func parent() {
	if _, err := StartChild(ChildSpec{Argv: []string{"/bin/sh", "-c", "echo $$ >up; exec sleep 300"}, Stdout: os.Stdout}); err != nil {
		panic(err)
	}
	select {}
}

// numberIn waits for a process's number in a file.
func numberIn(t *testing.T, path string) (pid int) {
	t.Helper()
	expect.Await(t, path+" holds a number", func() bool {
		data, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0 && strings.HasSuffix(string(data), "\n")
	})
	return pid
}

func gone(pid int) func() bool {
	return func() bool { p, ok := look(pid); return !ok || p.Dead() }
}

func TestAChildEndsWithItsGroup(t *testing.T) {
	dir := t.TempDir()
	said := pipe.Kept{Most: 5, End: true}
	spec := ChildSpec{Argv: []string{"/bin/sh", "-c", `sleep 300 & echo $! >up; echo "a bird" >&2; [ -e stay ] && wait; exit 3`}, Dir: dir, Stderr: &said}
	exit, err := RunChild(t.Context(), spec)
	expect.True(t, err == nil && exit.Code == 3 && string(said.Bytes()) == "bird\n", "%v, %+v, said %q", err, exit, said.Bytes())
	expect.Await(t, "what it left has ended", gone(numberIn(t, filepath.Join(dir, "up"))))

	expect.No(t, errors.Join(os.WriteFile(filepath.Join(dir, "stay"), nil, 0o600), os.Remove(filepath.Join(dir, "up"))))
	c := expect.Of(StartChild(spec))(t)
	kid := numberIn(t, filepath.Join(dir, "up"))
	c.Kill()
	c.Kill()
	e := c.Exit()
	expect.True(t, e.Signal == syscall.SIGKILL, "exit %+v", e)
	expect.Await(t, "its own child has ended", gone(kid))
}

func TestAChildSpeaksThroughItsFiles(t *testing.T) {
	in, to, err := os.Pipe()
	expect.No(t, err)
	from, out, err := os.Pipe()
	expect.No(t, err)
	c := expect.Of(StartChild(ChildSpec{Argv: []string{"/bin/cat"}, Dir: "/", Stdin: in, Stdout: out}))(t)
	in.Close()
	out.Close()
	expect.Of(io.WriteString(to, "hello"))(t)
	to.Close()
	text, err := io.ReadAll(from)
	expect.True(t, string(text) == "hello" && err == nil, "%q, %v", text, err)
	from.Close()
	e := c.Exit()
	expect.True(t, e.Code == 0, "exit %+v", e)
}

func TestAChildIsEndedWithItsContextAndToldWhyItCantStart(t *testing.T) {
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	e, err := RunChild(ctx, ChildSpec{Argv: []string{"/bin/sleep", "300"}, Dir: "/"})
	expect.True(t, errors.Is(err, why) && e.Signal == syscall.SIGKILL, "%+v, %v", e, err)
	var said pipe.Kept
	for _, c := range []struct {
		spec ChildSpec
		want error
	}{
		{ChildSpec{Argv: []string{"/no/such/program"}, Stdout: &said}, os.ErrNotExist},
		{ChildSpec{Argv: []string{"/"}}, os.ErrPermission},
		{ChildSpec{Argv: []string{"/bin/true"}, Dir: "/no/such/directory", Stderr: &said}, os.ErrNotExist},
		{ChildSpec{}, os.ErrInvalid},
	} {
		expect.Err(t, expect.Fault(StartChild(c.spec)), c.want, c.spec)
	}
	expect.Err(t, expect.Fault(Look("no-such-program-here")), os.ErrNotExist, "look")
}

func TestAChildDiesWithItsParent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "CELL_TEST_PARENT=1"), os.Stderr
	expect.No(t, cmd.Start())
	pid := numberIn(t, filepath.Join(dir, "up"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	expect.Await(t, "the child has ended", gone(pid))
	collectOrphans(t, "")
}
