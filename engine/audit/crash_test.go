package audit_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const crashDir = "AUDIT_CRASH_DIR"

// TestKilledProcessLeavesASealedLog kills a writer that rotates its key again
// and again: what it acknowledged is in the log, the log verifies against its
// checkpoint and the one before, and each key is signed by the one before.
func TestKilledProcessLeavesASealedLog(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	h := newHouse(t)
	h.record(1)
	saved := h.checkpoint()
	for round := range 6 {
		h.close()
		acknowledged := killAfter(t, filepath.Dir(h.data), 40+60*round)
		h.open()
		r := h.verify(saved)
		expect.Must(t, r.OK && r.Events >= acknowledged && len(r.Keys) >= 2 && h.fault() == nil, "round %d: acknowledged %d: %+v", round, acknowledged, r)
		h.record(1) // the log goes on
		saved = h.checkpoint()
	}
}

func writeUntilKilled(t *testing.T, dir string) {
	sealer := openSealer(t, filepath.Join(dir, "audit.key"))
	db := openStore(t, filepath.Join(dir, "data.db"), store.Options{Seal: sealer.Seal})
	l := audit.New(db, audit.Options{})
	var out sync.Mutex
	var writers sync.WaitGroup
	expect.Of(l.RotateKey(t.Context(), alice, sealer))(t) // one at least, however soon it is killed
	for range 8 {
		writers.Go(func() {
			for {
				var seq uint64
				err := l.Update(t.Context(), alice, func(tx *audit.Tx) (err error) {
					seq, err = tx.Record(entry("task.queued", "tk_1"))
					return err
				})
				if err != nil {
					os.Stderr.WriteString(err.Error())
					return
				}
				out.Lock()
				os.Stdout.WriteString(strconv.FormatUint(seq, 10) + "\n")
				out.Unlock()
			}
		})
	}
	writers.Go(func() {
		for {
			if _, err := l.RotateKey(t.Context(), alice, sealer); err != nil {
				os.Stderr.WriteString(err.Error())
				return
			}
		}
	})
	writers.Wait()
}

// killAfter kills the child after it acknowledged n events and returns the
// greatest seq it acknowledged.
func killAfter(t *testing.T, dir string, n int) (greatest uint64) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcessLeavesASealedLog$")
	child.Env = append(os.Environ(), crashDir+"="+dir)
	var complaints strings.Builder
	child.Stderr = &complaints
	out := expect.Of(child.StdoutPipe())(t)
	expect.No(t, child.Start())
	lines := bufio.NewScanner(out)
	for count := 0; lines.Scan(); count++ {
		seq, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			break // the last line, cut
		}
		greatest = max(greatest, seq)
		if count == n {
			expect.No(t, child.Process.Kill())
		}
	}
	err := child.Wait()
	expect.Must(t, err != nil && strings.Contains(err.Error(), "killed") && complaints.Len() <= 0, "child: %v %s", err, complaints.String())
	return greatest
}
