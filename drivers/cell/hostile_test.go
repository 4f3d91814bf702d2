package cell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

// Families of attempts. What a run may ask of the engine as if it were a person
// is tried on the built program too.
const (
	approve  = "approve"   // be somebody else at the engine's socket
	escape   = "escape"    // outlive the run, or move while it stands still
	read     = "read"      // see what is not the run's
	write    = "write"     // change what is not the run's
	reachOut = "reach out" // to others, past the way out
)

// attempt is one thing that a hostile program tries. It runs in a cell, in a
// thread of its own or in a process of its own.
type attempt struct {
	family, name string
	// do returns what proves that it worked, "" when it did not.
	do func(w *world) string
	// alone runs it in a process of its own: it may not come back.
	alone bool
}

// attempts are all of them.
func attempts() []attempt {
	return slices.Concat(attemptsToApprove(), attemptsToEscape(), attemptsToSignal(), attemptsToRead(), attemptsToAsk(), attemptsToWrite(), attemptsToHarm(), attemptsToReach())
}

// secret is what everything holds that a run must not see.
var secret = regexp.MustCompile(`TOPSECRET-[0-9a-f]{24}`)

// seen returns the secret that bytes hold, "" for none.
func seen(data []byte) string { return string(secret.Find(data)) }

// read tries to read a file.
func (w *world) read(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, 1<<20)
	n, _ := f.Read(data)
	return seen(data[:n])
}

// machines reports whether a file is one of the machine's, and not of a place
// that only the cell has.
func (w *world) machines(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && slices.Contains(w.Devices, st.Dev)
}

// secrets are the files that hold one.
func (w *world) secrets() []string {
	return []string{filepath.Join(w.Data, "swarmdeck.db"), filepath.Join(w.Home, ".ssh/id_ed25519"), filepath.Join(w.Foreign, "secret"), filepath.Join(w.Scratch, "secret")}
}

// attack runs in the cell: it makes all attempts and writes a line for each
// that worked, at last of which deeds the engine was to be told and how many
// attempts it made.
func attack() int {
	var w world
	in := json.NewDecoder(strings.NewReader(os.Getenv("ATTACK")))
	in.DisallowUnknownFields() // the built program is attacked by this too, in a world that another test makes
	if err := in.Decode(&w); err != nil {
		fmt.Println("WRONG", err)
		return 1
	}
	if len(os.Args) > 2 { // one that is alone
		for _, a := range attempts() {
			if a.family+"/"+a.name == os.Args[2] {
				fmt.Print(a.proof(&w))
				return 0
			}
		}
		return 1
	}
	var wg sync.WaitGroup
	few := make(chan struct{}, 16)
	for _, a := range attempts() {
		few <- struct{}{}
		wg.Go(func() {
			fmt.Print(a.make(&w))
			<-few
		})
	}
	wg.Wait()
	fmt.Println("TOLD", strings.Join(everyDeed(&w), " "))
	fmt.Println("MADE", len(attempts()))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the engine has looked
	return 0
}

// make makes it, and returns what to say.
func (a attempt) make(w *world) string {
	out := make(chan string, 1)
	go func() {
		if a.alone {
			out <- apart(a)
			return
		}
		runtime.LockOSThread() // and its thread ends with it
		out <- a.proof(w)
	}()
	select {
	case said := <-out:
		return said
	case <-time.After(2 * time.Minute):
		return fmt.Sprintf("SLOW %s/%s\n", a.family, a.name)
	}
}

// proof makes it, and returns the line that says that it worked, "" when it did
// not.
func (a attempt) proof(w *world) string {
	if proof := a.do(w); proof != "" {
		return fmt.Sprintf("PROOF %s/%s %q\n", a.family, a.name, proof)
	}
	return ""
}

// apart makes an attempt in another process, which may kill or stop itself.
func apart(a attempt) string {
	cmd := exec.Command("/proc/self/exe", "attack", a.family+"/"+a.name)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return ""
	}
	end := time.AfterFunc(3*time.Second, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	cmd.WaitDelay = time.Second // what it left holds the pipe
	_ = cmd.Wait()
	return out.String()
}

// escapees are the live processes that carry a mark, by the attempt's name.
func escapees(mark string) map[int]string {
	all := map[int]string{}
	for _, pid := range numbers("/proc") {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil {
			continue
		}
		if name, ok := strings.CutPrefix(splitZero(data)[0], mark+":"); ok {
			if p, ok := look(pid); ok && !p.Dead() {
				all[pid] = name
			}
		}
	}
	return all
}

// held lets the attacker loose on a supervisor's worker.
func held(t *testing.T, s *Supervisor, w *world) {
	t.Helper()
	exe := copiedTo(t)
	spec := Spec{Run: "attack", Argv: []string{exe, "attack"}, Dir: w.Dir, Env: map[string]string{"ATTACK": marshal(t, w)}, Limits: DefaultLimits()}
	if w.Tty {
		spec.Terminal = &terminal.Size{Cols: 80, Rows: 24}
	}
	p := expect.Of(s.Start(spec))(t)
	defer p.CloseIO()
	defer func() { _ = p.Stop(Grace{Interrupt: -1, Terminate: -1}) }()
	var errs bytes.Buffer
	var wg sync.WaitGroup
	if p.Stderr != nil {
		wg.Go(func() { _, _ = io.Copy(&errs, p.Stderr) })
	}
	said := make([]byte, 0, 4096)
	for buf := make([]byte, 4096); !bytes.Contains(said, []byte("MADE ")); {
		n, err := p.Stdout.Read(buf)
		said = append(said, buf[:n]...)
		if err != nil {
			break
		}
	}
	made := 0
	for line := range strings.Lines(string(said)) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, proof, _ := strings.Cut(rest, ` "`)
		switch {
		case what == "MADE":
			made, _ = strconv.Atoi(rest)
		case what == "PROOF":
			t.Errorf("%s worked: %s", name, proof)
		case what == "SLOW":
			t.Errorf("%s did not end", rest)
		}
	}
	if made != len(attempts()) {
		t.Fatalf("%d of %d attempts were made; exit %+v\n%s", made, len(attempts()), p.Exit(), said)
	}
	t.Logf("%d attempts; name spaces: %t; missing layers: %q", made, w.Spaces, p.Missing())
	for _, host := range []string{"127.0.0.1", w.Host} {
		if c, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(w.Listen))); err == nil {
			c.Close()
			t.Error("reach out/listen to the machine worked")
		}
	}
	expect.True(t, len(escapees(w.Mark)) != 0, "nothing is there that could have escaped")
	expect.No(t, p.Pause(t.Context()))
	for pid, name := range escapees(w.Mark) {
		if q, ok := look(pid); ok && !q.Dead() && !frozen(pid) && !q.Stopped() && !stoppedGroup(p) {
			t.Errorf("escape/%s moves in a run that stands still", name)
		}
	}
	expect.No(t, p.Stop(Grace{}))
	for pid, name := range escapees(w.Mark) {
		t.Errorf("escape/%s worked: %d outlived the run", name, pid)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	wg.Wait()
	untouched(t, w)
}

func stoppedGroup(p *Process) bool {
	if p.group == nil {
		return false
	}
	data, _ := os.ReadFile(filepath.Join(p.group.path, "cgroup.events"))
	return bytes.Contains(data, []byte("frozen 1"))
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data := expect.Of(json.Marshal(v))(t)
	return string(data)
}

// untouched looks from outside at what must not have changed.
func untouched(t *testing.T, w *world) {
	t.Helper()
	info, err := os.Stat(w.Outside)
	expect.No(t, err, "write")
	data, _ := os.ReadFile(w.Outside)
	expect.True(t, string(data) == "untouched" && info.Mode() == 0o666, "write: outside is %q, %s", data, info.Mode())
	for _, dir := range []string{filepath.Dir(w.Dir), w.Data, w.Home, w.Foreign, w.Kept, w.Scratch} {
		entries := expect.Of(os.ReadDir(dir))(t)
		for _, e := range entries {
			expect.True(t, !strings.HasPrefix(e.Name(), "pwned"), "write: %s is in %s", e.Name(), dir)
		}
	}
	for _, path := range w.secrets() {
		data, _ := os.ReadFile(path)
		expect.True(t, seen(data) != "" && len(data) == len("TOPSECRET-")+25, "write: %s is %q", path, data)
	}
	p, ok := look(w.Victim)
	expect.True(t, ok && p.Stopped(), "escape: a signal came to the victim")
}

// TestAWorkerIsHeld is the setting that this test finds.
func TestAWorkerIsHeld(t *testing.T) {
	t.Run("all", func(t *testing.T) { holds(t, nil) })
	t.Run("in a terminal", func(t *testing.T) { holds(t, nil, inTerminal) })
	t.Run("bare, in a terminal", func(t *testing.T) { holds(t, []string{layerSpaces}, inTerminal) })
	t.Run("no other owner", func(t *testing.T) { holds(t, []string{layerIDMap}) })
	t.Run("bare", func(t *testing.T) { holds(t, []string{layerSpaces}) })
	t.Run("no scoped signals", func(t *testing.T) { holds(t, []string{layerSpaces, layerSignals}) })
}

// inTerminal gives the attacker a terminal.
func inTerminal(w *world) { w.Tty = true }

func holds(t *testing.T, without []string, settings ...func(*world)) {
	w, hide := stage(t)
	for _, set := range settings {
		set(w)
	}
	var told heard
	s, err := NewSupervisor(Options{Instance: "hostile" + strconv.Itoa(os.Getpid()), Hide: hide, Without: without, Held: told.take})
	expect.No(t, err)
	t.Cleanup(func() { expect.Is(t, s.Close(), nil) })
	w.Spaces = s.spaced(t)
	if !w.Spaces && os.Geteuid() == 0 {
		_, err = s.Start(Spec{Run: "root", Argv: []string{"true"}, Dir: w.Dir})
		expect.Err(t, err, ErrNoWall, "a worker in root's own directory without name spaces")
		expect.No(t, os.Chown(w.Dir, nobody, nobody))
	}
	works(t, s, w)
	names := told.of("work")
	expect.True(t, len(names) == 0, "usual work: told of %q", names)
	held(t, s, w)
	got, want := told.of("attack"), everyDeed(w)
	expect.True(t, slices.Equal(got, want), "told of %q, want %q", got, want)
}

// work is what a program does all day.
const work = `set -e
echo x >file; cat file >/dev/null; ln -s file link; ln file hard; mkdir -p a/b; mv file a/b/; rm -r a link hard
echo 'echo ran' >script; sh ./script | grep -q ran
echo y >"$HOME/y"; cat "$HOME/y" | sort | grep -q y; d=$(mktemp -d); echo z >"$d/z"; rm -r "$d"
(sleep 0.01 & wait); mkfifo pipe; (echo p >pipe &); read p <pipe
head -c 100 /dev/zero >zeros; head -c 10 /dev/urandom >/dev/null; cp zeros more
if [ -x /usr/bin/git ]; then mkdir -p g/.git/refs g/.git/objects; cd g; echo ref: refs/heads/m >.git/HEAD; echo a >f; git add f; git -c user.name=a -c user.email=a@b commit -q -m a; git log --oneline | grep -q a; cd ..; fi
if [ -x /usr/bin/python3 ]; then /usr/bin/python3 -c 'import subprocess,tempfile,multiprocessing; tempfile.TemporaryFile().write(b"x"); assert subprocess.run(["echo","q"],capture_output=True).stdout==b"q\n"'; fi
if [ -x /usr/bin/strace ]; then /usr/bin/strace -f -o traced true; grep -q execve traced; fi
echo WORKED`

// modes is the rest of it, which only name spaces allow.
const modes = `chmod +x script; ./script | grep -q ran; touch -d 2001-01-01 zeros; cp -p zeros more; chmod 600 more
if [ -x /usr/bin/cc ]; then printf 'int main(){return 7;}' >m.c; /usr/bin/cc m.c -o m; ./m || [ $? = 7 ]; fi
if [ -x /usr/bin/git ]; then git init -q h; fi
echo WORKED`

// works does that work in a worker: what holds everything holds nothing.
func works(t *testing.T, s *Supervisor, w *world) {
	t.Helper()
	script := work
	if s.without(layerSignals) { // it stops what it traces
		script = strings.ReplaceAll(script, "/usr/bin/strace", "/none")
	}
	if w.Spaces {
		script = strings.Replace(script, "echo WORKED", modes, 1)
	}
	if w.Spaces && runnable("/usr/bin/python3") == nil {
		script = strings.Replace(script, "echo WORKED", `/usr/bin/python3 -c '
import socket,threading
for family,at in ((socket.AF_INET,("127.0.0.1",0)),(socket.AF_UNIX,"sock")):
    l=socket.socket(family); l.bind(at); l.listen()
    c=socket.socket(family); c.connect(l.getsockname()); c.sendall(b"x"); assert l.accept()[0].recv(1)==b"x"
'
echo WORKED`, 1)
	}
	p := expect.Of(s.Start(Spec{Run: "work", Argv: sh(script), Dir: w.Dir, Limits: DefaultLimits()}))(t)
	defer p.CloseIO()
	defer func() { _ = p.Stop(Grace{Interrupt: -1, Terminate: -1}) }()
	p.Stdin.Close()
	var errs []byte
	var wg sync.WaitGroup
	wg.Go(func() { errs, _ = io.ReadAll(p.Stderr) })
	out, _ := io.ReadAll(p.Stdout)
	wg.Wait()
	if !bytes.HasSuffix(out, []byte("WORKED\n")) {
		t.Errorf("usual work: %+v\n%s%s", p.Exit(), out, errs)
	}
}

// refusedBy reports an error by which the kernel holds a call back, whatever
// its arguments.
func refusedBy(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSYS)
}

// spaced reports whether there are name spaces.
func (s *Supervisor) spaced(t *testing.T) bool {
	t.Helper()
	p := expect.Of(s.Start(Spec{Run: "settle", Argv: []string{"true"}, Dir: "/usr", Wall: Wall{Profile: Reader}}))(t)
	defer p.CloseIO()
	expect.No(t, p.Stop(Grace{Interrupt: -1, Terminate: -1}))
	return p.spaces
}
