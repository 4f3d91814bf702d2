package freecad

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

// python is a program in the place of the interpreter.
func python(t *testing.T, script string) Installation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python3")
	expect.No(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return Installation{Python: path}
}

func TestAProbeTellsWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"no module":  {`echo Traceback >&2; echo "ModuleNotFoundError: No module named 'FreeCAD'" >&2; exit 1`, "No module named 'FreeCAD'"},
		"no words":   {`exit 7`, "exited with status 7"},
		"no answer":  {`echo hello`, `answers "hello"`},
		"half of it": {`echo '{"freecad":"1.0"}'`, "what FreeCAD's version is"},
		"escapes":    {`printf '\033[31mred' >&2; exit 1`, "[31mred"},
	} {
		i := python(t, c.script)
		expect.Says(t, i.probe(t.Context(), nil), c.want, name)
	}
	good := python(t, `echo '{"freecad":"1.0.1","opencascade":"7.8.1"}'`)
	err := good.probe(t.Context(), nil)
	expect.True(t, err == nil && good.FreeCAD == "1.0.1" && good.OpenCASCADE == "7.8.1", "%+v, %v", good, err)
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	slow := python(t, "sleep 100")
	expect.Err(t, slow.probe(ctx, nil), context.DeadlineExceeded, "want that it took too long")
}

// greets answers hello as a worker does, and then goes on with more.
const greets = `read line; echo '{"jsonrpc":"2.0","id":1,"result":{"freecad":"1","opencascade":"2"}}'; `

func TestABrokenWorkerIsTold(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"ends at once":       {`echo "no libOCCT.so" >&2; exit 3`, "exited with status 3: no libOCCT.so"},
		"speaks nonsense":    {`read line; echo nonsense; sleep 100`, "no message"},
		"dies in a call":     {greets + `read line; kill -SEGV $$`, "was ended by SIGSEGV"},
		"closes its output":  {greets + `read line; exec >&-; sleep 100`, "the connection has ended"},
		"fails in some way":  {greets + `read line; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"KeyError: x"}}'; sleep 100`, "KeyError: x"},
		"answers in its way": {greets + `read line; echo '{"jsonrpc":"2.0","id":2,"result":[1]}'; sleep 100`, "not a result"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k, err := Open(t.Context(), Options{Installation: python(t, c.script), Dir: dir})
			if err == nil {
				_, _, err = k.Measure(t.Context(), "hash")
				var refusal *env.Error
				expect.True(t, !errors.As(err, &refusal), "%v is told as the caller's fault", err)
				_, _, again := k.Measure(t.Context(), "hash")
				expect.True(t, again != nil && again.Error() == err.Error(), "later %v, first %v", again, err)
				expect.No(t, k.Close())
			}
			expect.Says(t, err, c.want)
			left, _ := os.ReadDir(dir)
			expect.True(t, len(left) == 0, "left behind: %v", left)
		})
	}
}

func TestAWorkerThatNeverAnswersIsKilledInTime(t *testing.T) {
	k := expect.Of(Open(t.Context(), Options{Installation: python(t, greets+`trap "" TERM INT; while :; do sleep 1; done`), Dir: t.TempDir()}))(t)
	defer k.Close()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	expect.Err(t, expect.Fault(k.Overlap(ctx, "a", "b")), context.DeadlineExceeded, "want that it took too long")
}

// holder is the environment variable that makes this test program a parent that
// is killed: it names its worker's script.
const holder = "FREECAD_TEST_HOLDER"

func TestAWorkerDiesWithItsParent(t *testing.T) {
	if script := os.Getenv(holder); script != "" {
		k := expect.Of(Open(context.Background(), Options{Installation: Installation{Python: script}, Dir: filepath.Dir(script)}))(t)
		fmt.Printf("worker %d\n", k.(*Kernel).p.child.PID())
		_, _ = k.Overlap(context.Background(), "a", "b") // waits for ever
		return
	}
	// A worker in the middle of an operation does not see its input end.
	i := python(t, greets+`trap "" TERM INT PIPE; while :; do sleep 0.1; done`)
	parent := exec.Command(os.Args[0], "-test.run=^TestAWorkerDiesWithItsParent$", "-test.v")
	parent.Env = append(os.Environ(), holder+"="+i.Python)
	said := expect.Of(parent.StdoutPipe())(t)
	expect.No(t, parent.Start())
	pid := 0
	for lines := bufio.NewScanner(said); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "worker %d", &pid)
	}
	expect.No(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	expect.Must(t, pid != 0, "there was no worker")
	expect.Await(t, "worker", func() bool { return !alive(pid) })
}

// alive says whether a process runs: one that nobody has waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
