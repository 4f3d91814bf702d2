package cell

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// reachesItself is what a run does to its own processes, each line its outcome.
const reachesItself = `
say() { echo "$1 $2"; }
sleep 300 & kill -0 $! && kill $!; wait $! || say "child" $?
kill -0 $!; say "who has gone" $?
(trap 'exit 7' USR1; while :; do sleep 0.01; done) & sleep 0.1; kill -USR1 $!; wait $! || say "handler" $?
sh -c 'kill -KILL $$' || say "itself" $?
timeout -k 1 0.05 sleep 300 || say "timeout" $?
setsid sh -c 'sleep 300 & sleep 300' & sleep 0.2; kill -TERM -- -$!; wait $! || say "group" $?
sleep 300 & kill -STOP $!; kill -CONT $!; kill -TERM $!; wait $! || say "stopped" $?
set -m; sleep 300 & kill %1; wait $! || say "job" $?
kill -0 1; say "asks for another" $?
kill -TERM -- -99999999; say "no group" $?
`

const reachesItselfSays = "child 143\nwho has gone 1\nhandler 7\nitself 137\ntimeout 124\ngroup 143\nstopped 143\njob 143\nasks for another 1\nno group 1\n"

// reachesMore is the same by calls that no shell makes.
const reachesMore = `
import ctypes, os, signal, subprocess, threading, time
libc = ctypes.CDLL(None, use_errno=True)
got = []
def took(n, frame): got.append(n)
signal.signal(signal.SIGUSR1, took)
others = {signal.SIGUSR2, signal.SIGRTMIN}
signal.pthread_sigmask(signal.SIG_BLOCK, others)
def until(n):
    while len(got) < n: time.sleep(0.001)
signal.raise_signal(signal.SIGUSR1); until(1)
os.kill(os.getpid(), signal.SIGUSR1); until(2)
threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGUSR1)).start(); until(3)
signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1); until(4)
os.killpg(0, 0)
parent = os.getpid()
pid = os.fork()
if pid == 0:
    for i in range(100): libc.sigqueue(parent, signal.SIGRTMIN, i) == 0 or os._exit(1)
    libc.tgkill(parent, parent, signal.SIGUSR2) == 0 or os._exit(2)
    fd = os.pidfd_open(parent)
    signal.pidfd_send_signal(fd, signal.SIGUSR1)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
until(5)
assert signal.sigwait({signal.SIGUSR2}) == signal.SIGUSR2
for i in range(100):
    info = signal.sigwaitinfo(others)
    assert info.si_signo == signal.SIGRTMIN and info.si_pid == pid, info
assert not signal.sigpending()
p = subprocess.Popen(["sleep", "300"], start_new_session=True)
fd = os.pidfd_open(p.pid)
assert not os.get_inheritable(fd)
os.killpg(p.pid, signal.SIGTERM)
assert p.wait() == -15
try: signal.pidfd_send_signal(fd, 0)
except ProcessLookupError: print("all")
`

func TestWhereSignalsAreJudgedARunReachesItself(t *testing.T) {
	var h heard
	s := hearing(t, h.take, layerSpaces, layerSignals)
	for name, c := range map[string]struct {
		argv []string
		says string
	}{
		"a shell":   {[]string{"/bin/bash", "-c", reachesItself}, reachesItselfSays},
		"a program": {[]string{"/usr/bin/python3", "-c", reachesMore}, "all\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if runnable(c.argv[0]) != nil {
				t.Skip(c.argv[0] + " is not there")
			}
			p := start(t, s, Spec{Run: name, Argv: c.argv, Wall: Wall{Profile: Worker}})
			var errs strings.Builder
			read := make(chan struct{})
			go func() {
				defer close(read)
				buf := make([]byte, 4096)
				for {
					n, err := p.Stderr.Read(buf)
					errs.Write(buf[:n])
					if err != nil {
						return
					}
				}
			}()
			out := said(t, p)
			if <-read; out != c.says {
				t.Errorf("%s\n%s", out, errs.String())
			}
			if got := h.of(name); len(got) > 0 {
				t.Errorf("told of %q", got)
			}
		})
	}
}

func TestWhoReachesForAnotherIsToldAndAskingIsNot(t *testing.T) {
	for script, want := range map[string][]string{
		"kill -0 1":            nil,
		"kill -0 -- -1":        nil,
		"kill -CONT 1":         {deedReach},
		"kill -CONT -- -1":     {deedReach},
		"kill -CONT $PPID":     {deedReach},
		"kill -CONT -- -$PPID": {deedReach},
	} {
		var h heard
		s := hearing(t, h.take, layerSpaces, layerSignals)
		p := start(t, s, Spec{Run: "r", Argv: []string{"bash", "-c", script + " 2>&1; echo $?"}, Wall: Wall{Profile: Worker}})
		if out := said(t, p); !strings.Contains(out, "not permitted") || !strings.HasSuffix(out, "\n1\n") {
			t.Errorf("%s: %q", script, out)
		}
		if got := h.of("r"); !slices.Equal(got, want) {
			t.Errorf("%s: told of %q", script, got)
		}
	}
}

func TestOnlyWhatDescendsFromTheInitIsItsFamily(t *testing.T) {
	s := newSupervisor(t)
	p := start(t, s, Spec{Argv: sh("sleep 300 & wait")})
	eventually(t, "it has a child", func() bool { return len(descendants(p.init)) > 1 })
	f := &family{of: p.init, known: map[int]uint64{}}
	for _, q := range descendants(p.init) {
		if _, is := f.find(q.PID); !is || f.known[q.PID] != q.Start {
			t.Errorf("%d is not of it", q.PID)
		}
	}
	for name, pid := range map[string]int{"the init": p.init, "its parent": unix.Getpid(), "the first": 1} {
		if q, is := f.find(pid); is || q.PID != pid {
			t.Errorf("%s is of it: %+v", name, q)
		}
	}
	known := descendants(p.init)[0]
	f.known[1] = 1 // another had that number
	if _, is := f.find(1); is {
		t.Error("a number alone is enough")
	}
	if err := p.Stop(Grace{Interrupt: -1, Terminate: -1}); err != nil {
		t.Fatal(err)
	}
	if q, is := f.find(known.PID); is {
		t.Errorf("%+v has gone", q)
	}
}
