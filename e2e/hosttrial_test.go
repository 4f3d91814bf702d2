package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// TestEachPromptIsGivenOnceHoweverTheLinkOfAHostIsCut has agents work on a host that a real
// sshd reaches while, at some instant of each round of prompts, the link is cut, held
// or its cable pulled, or the keeper or the engine is killed. SWARMDECK_HOST_CUTS is
// how often, where somebody has more time.
func TestEachPromptIsGivenOnceHoweverTheLinkOfAHostIsCut(t *testing.T) {
	t.Parallel()
	cuts := 7
	if n, err := strconv.Atoi(os.Getenv("SWARMDECK_HOST_CUTS")); err == nil {
		cuts = n
	}
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SWARMDECK_HOST_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	c := newHostCuts(t, rand.New(rand.NewPCG(seed, 0)))
	began := time.Now()
	for n := range cuts {
		c.round(n)
	}
	t.Logf("%d cuts in %s: %v; %d prompts, given %d times: %v; %v again", cuts, time.Since(began).Round(time.Second), c.made, c.prompts, c.handed, c.came, c.answers)
	expect.True(t, c.seen, "agents that work are not seen")
	for _, a := range c.agents {
		c.ok("agent", "delete", a, "--yes")
	}
	expect.Await(t, "end of their processes", func() bool { return len(c.working()) == 0 })
	c.ok("host", "remove", "box")
	expect.Await(t, "no keeper is left", func() bool { return len(c.keepers("")) == 0 })
	_, err := os.Stat(filepath.Join(c.home, ".cache/swarmdeck"))
	expect.True(t, os.IsNotExist(err), "files are left there: %v", err)
	left := c.working()
	expect.True(t, len(left) == 0, "still there: %q", left)
	c.ok("audit", "verify")
	c.ok("audit", "reconcile")
}

// hostCuts is an operator with agents on a host, whose link has accidents.
type hostCuts struct {
	*user
	random  *rand.Rand
	engine  *daemon
	cable   string // a network interface that can be pulled, "" for none
	agents  []string
	kinds   []string       // of accidents, in the order of their turns
	made    map[string]int // accidents by kind
	prompts int
	handed  int            // to agents, in all their tries
	answers map[string]int // to whether one is given again
	came    map[string]int // what prompts came to
	seen    bool           // agents were, at work
	healed  chan struct{}  // closed when the round's accident is over; nil is at once
}

// Accidents.
const (
	cutHost   = "link process killed"
	cutClient = "ssh killed"
	cutServer = "sshd killed"
	holdLink  = "link stopped"
	pullCable = "cable pulled"
	endKeeper = "keeper killed"
	endEngine = "engine killed"
)

func newHostCuts(t *testing.T, r *rand.Rand) *hostCuts {
	u := newUser(t)
	u.program = u.built()
	c := &hostCuts{
		user: u, random: r, agents: []string{"ada", "bob"}, made: map[string]int{}, answers: map[string]int{}, came: map[string]int{},
		kinds: []string{cutHost, cutClient, cutServer, holdLink, pullCable, endKeeper, endEngine},
	}
	l := c.apart()
	if l == nil {
		t.Log("no network name space here: no cable is pulled")
		c.kinds = slices.DeleteFunc(c.kinds, func(k string) bool { return k == pullCable })
		l = expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	}
	address := u.sshAt(u.sshdOn(l))
	u.ok("tenant", "create", "t_acme")
	c.engine = u.daemon()
	u.ok("host", "add", "box", address, "--lease", "20s")
	// It writes down each prompt that it is given, and whether another self is there.
	line := `exec 9>>own; flock -n 9 || echo two of them >>got; while read line; do echo "$line" >>got; sleep 0.$((RANDOM%8))77; echo '{"type":"result","status":"succeeded","output":{}}'; done # of ` + u.home
	for _, a := range c.agents {
		u.ok("agent", "create", a, "--project", "p", "--host", "box", "--", "bash", "-c", line)
	}
	return c
}

// apart listens behind a cable, in a network name space of its own; nil where there
// can be none.
func (c *hostCuts) apart() net.Listener {
	tag := strconv.FormatUint(uint64(os.Getpid())*16+c.random.Uint64N(16), 36)
	b := os.Getpid() & 0x3fff
	net24 := fmt.Sprintf("10.%d.%d.", 192+b>>8, b&0xff)
	s, err := newSpace(c.t, tag, net24+"2/30")
	c.cable = s.cable
	if err != nil || ip("addr add "+net24+"1/30 dev "+c.cable) != nil {
		return nil
	}
	made := make(chan net.Listener, 1)
	go func() {
		defer close(made)
		if s.enter() != nil {
			return
		}
		if l, err := net.Listen("tcp", net24+"2:0"); err == nil {
			made <- l
		}
	}()
	return <-made
}

// task is what is known of one.
type taskSeen struct {
	Status  string `json:"status"`
	Waiting string `json:"waiting"`
	Attempt int    `json:"attempt"` // from 0
	Error   struct {
		Code string `json:"code"`
	} `json:"error"`
}

func (c *hostCuts) task(id string) (s taskSeen) {
	c.t.Helper()
	expect.No(c.t, json.Unmarshal([]byte(c.ok("task", "show", id, "-o", "json")), &s))
	return s
}

// round gives each agent a prompt and has one accident meanwhile.
func (c *hostCuts) round(n int) {
	c.t.Helper()
	kind := c.kinds[n%len(c.kinds)]
	ids := map[string]string{}
	for _, a := range c.agents {
		text := fmt.Sprintf("prompt %d of %s.", n, a)
		expect.Await(c.t.(*testing.T), "turn for "+a, func() bool {
			code, out, _ := c.run("agent", "assign", a, text, "-o", "json")
			if code == 0 {
				ids[text] = field(out, "task_id")
			}
			return code == 0
		})
	}
	if c.random.IntN(2) == 0 {
		expect.Await(c.t.(*testing.T), "work on a prompt", func() bool { return len(c.given(fmt.Sprintf("prompt %d of ", n))) > 0 })
	}
	c.seen = c.seen || len(c.working()) > 0
	c.healed = nil
	c.accident(kind)
	c.made[kind]++
	for text, id := range ids {
		var seen taskSeen
		begun := time.Now()
		expect.Await(c.t.(*testing.T), "end of "+text, func() bool {
			if seen = c.task(id); time.Since(begun) > patience/2 {
				c.t.Fatalf("round %d, %s: %q has not ended\n%s%s%s", n, kind, text, c.ok("task", "show", id), c.ok("agent", "list"), c.ok("host", "list", "-o", "wide"))
			}
			if seen.Waiting == "approval" { // the engine does not know whether the agent got it; who looks does
				c.answer(id, len(c.given(text)) == 0)
			}
			return slices.Contains([]string{"succeeded", "failed", "cancelled", "blocked"}, seen.Status)
		})
		c.prompts++
		c.came[strings.TrimSpace(seen.Status+" "+seen.Error.Code)]++
		given := c.given(text)
		c.handed += len(given)
		alone := slices.Compact(slices.Sorted(slices.Values(given))) // by the span of its try
		asked := kind == endEngine || kind == endKeeper              // which the agent, or who knew of it, does not outlive
		well := seen.Status == "succeeded" || asked && seen.Status == "blocked"
		expect.True(c.t, well && len(given) == 1 && len(alone) == 1,
			"round %d, %s: %q has %d tries and %s %s; it was given as %q", n, kind, text, seen.Attempt+1, seen.Status, seen.Error.Code, given)
	}
	if c.healed != nil {
		<-c.healed
	}
	expect.Must(c.t, len(c.given("two of them")) == 0, "round %d, %s: two processes of one agent were there at once", n, kind)
}

// answer says whether a prompt that an end cut off is given again.
func (c *hostCuts) answer(task string, again bool) {
	c.t.Helper()
	for line := range strings.Lines(c.ok("approval", "list", "--open", "-o", "json")) {
		word := "deny"
		if again {
			word = "approve"
		}
		if field(line, "task_id") == task {
			c.ok("approval", word, field(line, "approval_id"), "--reason", "as it was written down")
			c.answers[word]++
		}
	}
}

// working are the command lines of what works in a directory of the host's agents.
func (c *hostCuts) working() (lines []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		at, _ := os.Readlink(filepath.Join(dir, "cwd"))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(line), "\x00-keeper\x00") {
			continue
		}
		if strings.Contains(at, c.home+"/.cache/") || strings.Contains(string(line), "# of "+c.home) {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// given are the lines with a text that agents wrote down.
func (c *hostCuts) given(text string) (lines []string) {
	all, _ := filepath.Glob(filepath.Join(c.home, ".cache/swarmdeck/keeper-*/agents/*/work/got"))
	for _, path := range all {
		got := expect.Of(os.ReadFile(path))(c.t)
		for line := range strings.Lines(string(got)) {
			if strings.Contains(line, text) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// accident has one happen.
func (c *hostCuts) accident(kind string) {
	c.t.Helper()
	signal := func(sig syscall.Signal, pids ...int) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig)
		}
	}
	over := make(chan struct{})
	later := func(heal func()) { // after a while, whatever the engine does meanwhile
		time.AfterFunc(time.Duration(500+c.random.IntN(4000))*time.Millisecond, func() { heal(); close(over) })
		c.healed = over
	}
	switch kind {
	case cutHost:
		signal(syscall.SIGKILL, c.keepers("link")...)
	case cutClient:
		signal(syscall.SIGKILL, c.clients()...)
	case cutServer:
		for _, pid := range c.keepers("link") {
			signal(syscall.SIGKILL, parent(pid))
		}
	case holdLink:
		held := c.keepers("link")
		signal(syscall.SIGSTOP, held...)
		later(func() { signal(syscall.SIGCONT, held...) })
	case pullCable:
		expect.No(c.t, ip("link set "+c.cable+" down"))
		later(func() { expect.Is(c.t, ip("link set "+c.cable+" up"), nil) })
	case endKeeper:
		signal(syscall.SIGKILL, c.keepers("hold")...)
	case endEngine:
		_ = c.engine.cmd.Process.Kill()
		_ = c.engine.cmd.Wait()
		c.engine = c.daemon()
	}
}

// clients are the engine's ssh processes.
func (c *hostCuts) clients() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if len(words) > 3 && filepath.Base(words[0]) == "ssh" && words[2] == filepath.Join(c.home, "config") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// parent is the parent of a process if that is a server of ssh; signals to the
// process 0 that it else is are nobody's.
func parent(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	rest := strings.Fields(string(status[strings.LastIndexByte(string(status), ')')+1:]))
	if len(rest) < 2 {
		return notThere
	}
	up, _ := strconv.Atoi(rest[1])
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", up))
	if up < 2 || !strings.HasPrefix(string(name), "sshd") {
		return notThere
	}
	return up
}

// notThere is the number of no process.
const notThere = 1 << 30
