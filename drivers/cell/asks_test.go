package cell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asksOfItsOwn asks of a run's own files in every way, each line an answer.
const asksOfItsOwn = `
import ctypes, errno, os, stat, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def say(name, do):
    try: print(name, do())
    except OSError as e: print(name, errno.errorcode[e.errno])
def kind(st): return stat.S_IFMT(st.st_mode), st.st_uid, (st.st_nlink, st.st_size) if stat.S_ISREG(st.st_mode) else 0
os.mkdir("d"); os.mkdir("d/e"); open("d/f", "w").write("12345"); os.chmod("d/f", 0o640); os.mkfifo("d/p")
os.symlink("f", "d/l"); os.symlink("d", "ld"); os.symlink("loop", "loop"); os.symlink("no", "d/dangling"); os.symlink("/proc/self/fd", "fds")
os.symlink(os.getcwd() + "/d/e/../f", "far")
top = os.getcwd(); d = os.open("d", os.O_RDONLY)
paths = ["d", "d/", "d/.", "d/..", "d/f", "d/f/", "d/f/x", "d/f/..", "d/l", "d/l/", "ld", "ld/", "ld/l", "ld/../d/f", "loop", "d/dangling", "d/p", "d/none", "none/..", "",
  "far", "d//f", "./d/./f", top, top + "/d/f", top + "/../" + os.path.basename(top) + "/d/l", "x" * 255, "x" * 256, "d/" * 2000 + "f", "x" * 5000, "..", "../..", "/", "/usr", "/usr/bin/env", "/bin/sh",
  "/etc/passwd", "/dev/null", "/proc/cpuinfo", "/proc/self", "/proc/self/exe", "/proc/self/cwd/d/f", "/proc/self/root/usr/bin/env", "/proc/thread-self/cwd", "/proc/self/fd/0", "/dev/stdin",
  "/dev/fd/%d/f" % d, "fds/%d/l" % d, "/proc/%d/cwd" % os.getpid(), "/proc/self/task/%d" % os.getpid()]
for p in paths:
    n = p if len(p) < 99 else str(len(p))
    n = n.replace(str(os.getpid()), "PID")
    say("stat " + n, lambda: kind(os.stat(p)))
    say("lstat " + n, lambda: kind(os.lstat(p)))
    say("access " + n, lambda: [os.access(p, m) for m in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)])
    say("eaccess " + n, lambda: os.access(p, os.R_OK, effective_ids=True))
    say("readlink " + n, lambda: os.readlink(p).split(":")[0].replace(str(os.getpid()), "PID"))
    say("statfs " + n, lambda: os.statvfs(p).f_namemax)
    say("chdir " + n, lambda: os.chdir(p) or os.getcwd().replace(str(os.getpid()), "PID"))
    os.chdir(top)
import random
random.seed(1)
names = ["d", "e", "f", "l", "p", "ld", "far", "fds", "loop", "none", "dangling", ".", "..", "", os.path.basename(top)]
for i in range(1500):
    p = random.choice(["", "", top + "/", "/proc/self/cwd/", "/dev/fd/%d/" % d, "../"]) + "/".join(random.choices(names, k=random.randint(1, 7)))
    for name, do in (("stat", os.stat), ("lstat", os.lstat)): say("%s %d %s" % (name, i, p), lambda: kind(do(p)))
for p in ("f", "l", "e", "p", "../d/f", ".", "..", "none", "dangling"):
    say("fstatat " + p, lambda: kind(os.stat(p, dir_fd=d)))
    say("fstatat of a link " + p, lambda: kind(os.stat(p, dir_fd=d, follow_symlinks=False)))
    say("readlinkat " + p, lambda: os.readlink(p, dir_fd=d))
    say("faccessat " + p, lambda: os.access(p, os.W_OK, dir_fd=d))
for p in ("d", "d/f", "ld"):
    def at(flags=0):
        fd = os.open(p, os.O_PATH | flags); st = os.fstat(fd); os.close(fd); return kind(st)
    say("O_PATH " + p, at)
    say("O_PATH of a directory " + p, lambda: at(os.O_DIRECTORY))
for fd in (0, d, 999):
    say("fstat %d" % fd, lambda: kind(os.fstat(fd))[0])
    buf = ctypes.create_string_buffer(512)
    say("statx %d" % fd, lambda: (libc.statx(fd, b"", 0x1000, 0x7ff, buf), ctypes.get_errno()))
same = os.stat("d/f"), os.stat(os.open("d/f", os.O_RDONLY)), os.lstat(top + "/d/f")
print("the same", same[0] == same[1] == same[2])
for name, call in (("stat", lambda: libc.stat(b"d", 1)), ("no path", lambda: libc.stat(1, buf)), ("readlink", lambda: libc.readlink(b"ld", buf, 1)), ("none", lambda: libc.readlink(b"ld", buf, 0)), ("getcwd", lambda: libc.syscall(79, buf, 1)), ("flags", lambda: libc.fstatat(d, b"f", buf, 1))):
    if name == "getcwd" and os.uname().machine != "x86_64": continue
    ctypes.set_errno(0); print(name, call(), errno.errorcode.get(ctypes.get_errno()))
w = libc.inotify_init1(0); wd = libc.inotify_add_watch(w, b"d", 0x100); open("d/new", "w"); event = os.read(w, 512)
print("inotify", wd, event[16:19], libc.inotify_add_watch(w, b"ld", 0x100), libc.inotify_add_watch(w, b"none", 0x100), libc.inotify_add_watch(0, b"d", 0x100))
os.chdir("d/e"); os.rmdir("../e"); say("removed", os.getcwd); say("in removed", lambda: os.stat("x")); say("itself", lambda: kind(os.stat("."))); os.chdir(top)
bad = []
def ask():
    for i in range(300):
        if os.stat("d/l").st_size != 5 or os.readlink("ld") != "d": bad.append(i)
ts = [threading.Thread(target=ask) for _ in range(8)]
for t in ts: t.start()
ps = [subprocess.Popen(["/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do [ -f d/f ] && [ ! -e none ] || echo bad; i=$((i+1)); done"], stdout=subprocess.PIPE) for _ in range(8)]
print("processes", [p.communicate()[0] for p in ps])
for t in ts: t.join()
print("threads", bad)
`

func TestWhereItsInitAnswersARunIsToldOfItsOwnAsByTheKernel(t *testing.T) {
	python := "/usr/bin/python3"
	if runnable(python) != nil {
		t.Skip(python + " is not there")
	}
	s := newSupervisor(t, layerSpaces)
	dir := filepath.Join(yard(t), "it")
	tell := func(profile Profile) string {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		spec := Spec{Run: string(profile), Argv: []string{python, "-c", asksOfItsOwn}, Dir: dir, Wall: Wall{Profile: profile}}
		if os.Geteuid() == 0 {
			spec.User = &User{UID: nobody, GID: nobody}
		}
		p := start(t, s, spec)
		errs := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(p.Stderr)
			errs <- string(all)
		}()
		out := said(t, p)
		if got := <-errs; got != "" {
			t.Fatalf("%s: %s\n%s", profile, out, got)
		}
		return out
	}
	want, got := strings.Split(tell(Open), "\n"), strings.Split(tell(Worker), "\n")
	if len(want) != len(got) || len(want) < 300 {
		t.Fatalf("%d answers, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s\nwant\n%s", got[i], want[i])
		}
	}
}

func TestARunThatAsksAllTheTimeIsPausedAndEnded(t *testing.T) {
	s := newSupervisor(t, layerSpaces)
	p := start(t, s, Spec{Argv: sh(`for i in 1 2 3 4 5 6 7 8; do (while [ -e /usr ]; do [ -e /none ]; done) & done; mkfifo p; [ -p p ] && echo ready; wait`), Wall: Wall{Profile: Worker}})
	if _, err := p.Stdout.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := p.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Stop(Grace{Interrupt: -1, Terminate: -1}); err != nil {
		t.Fatal(err)
	}
}

func TestSight(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b/c", "x/y"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"in": "x/to", "x/to": dir + "/a/./b", "a/loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := newSight([]string{dir + "/in/c", dir + "/later/on", dir + "/a/loop"}, []string{dir + "/in"})
	for path, want := range map[string]seenAs{
		"": onTheWay, "/a": onTheWay, "/a/b": onTheWay, "/a/b/c": entire, "/a/b/c/d": entire, "/a/b/cd": unseen, "/in": linked, "/in/c": linked,
		"/x": onTheWay, "/x/to": linked, "/x/y": unseen, "/later": onTheWay, "/later/on": entire, "/none": unseen, "-more": unseen,
	} {
		if got := s.of(dir + path); got != want {
			t.Errorf("%s is seen as %d, want %d", path, got, want)
		}
	}
	if s.of("/") != onTheWay || s.of("/none") != unseen {
		t.Error("the root is not on the way")
	}
}

func TestProcessIn(t *testing.T) {
	for path, want := range map[string]string{
		"/proc/12": "12", "/proc/12/fd/3": "12/fd/3", "/proc/": "0", "/proc/self": "0", "/proc/12x": "0", "/proc/99999999999999999999/fd": "0", "/procs/1": "0",
	} {
		if pid, rest := processIn(path); strconv.Itoa(pid)+rest != want {
			t.Errorf("%s: %d %q", path, pid, rest)
		}
	}
}

// BenchmarkStat is what one question costs a run.
func BenchmarkStat(b *testing.B) {
	exe := copiedTo(b)
	for name, without := range map[string][]string{"name spaces": nil, "answered": {layerSpaces}} {
		b.Run(name, func(b *testing.B) {
			p := start(b, newSupervisor(b, without...), Spec{Argv: []string{exe, "asks", strconv.Itoa(b.N)}, Wall: Wall{Profile: Worker, Read: []string{exe}}})
			out, err := io.ReadAll(p.Stdout)
			took, wrong := time.ParseDuration(strings.TrimSpace(string(out)))
			if err != nil || wrong != nil {
				b.Fatal(string(out), err, wrong)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
		})
	}
}

// askMany asks so often whether a file is there, and says how long it took.
func askMany(times string) int {
	n, _ := strconv.Atoi(times)
	begin := time.Now()
	var st unix.Stat_t
	for range n {
		if err := unix.Lstat("/usr/bin/env", &st); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println(time.Since(begin))
	return 0
}
