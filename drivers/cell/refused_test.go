package cell

import (
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// heard collects what a supervisor is told of refused deeds.
type heard struct {
	mu  sync.Mutex
	all []Held
}

func (h *heard) take(r Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r)
}

// of lists the deeds that a run was refused, in the order of the alphabet.
func (h *heard) of(run string) (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.all {
		if r.Run == run && r.Laid == "" {
			names = append(names, r.Deed)
		}
	}
	slices.Sort(names)
	return names
}

// hearing is a supervisor whose refusals are collected.
func hearing(t *testing.T, take func(Held), without ...string) *Supervisor {
	t.Helper()
	s := expect.Of(NewSupervisor(Options{Instance: "heard" + strconv.Itoa(os.Getpid()), Without: without, Held: take}))(t)
	t.Cleanup(func() { expect.Is(t, s.Close(), nil) })
	return s
}

// said reads what a run prints until it has ended, and ends the rest.
func said(t *testing.T, p *Process) string {
	t.Helper()
	p.Stdin.Close()
	out := expect.Of(io.ReadAll(p.Stdout))(t)
	expect.No(t, p.Stop(Grace{Interrupt: -1, Terminate: -1}))
	return string(out)
}

// everyDeed is what the attacker is refused that somebody hears of.
func everyDeed(w *world) (names []string) {
	for _, d := range deeds {
		switch d.name {
		case deedLook: // a reader's
		case deedInit:
			if w.Spaces {
				names = append(names, d.name)
			}
		case deedNetwork:
			if !w.Spaces {
				names = append(names, d.name)
			}
		default:
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return names
}

func TestADeedIsToldOnceWithWhoTriedIt(t *testing.T) {
	for name, without := range map[string][]string{"all": nil, "no name spaces": {layerSpaces}} {
		t.Run(name, func(t *testing.T) {
			var h heard
			s := hearing(t, h.take, without...)
			whose := Whose{Tenant: "t", Agent: "eve", Role: "coder", Task: "tk"}
			p := start(t, s, Spec{Run: "r", Whose: whose, Wall: Wall{Profile: Worker}, Argv: sh(
				`cp "$(command -v unshare)" "$(printf 'x\033[31m\ny')"; for i in 1 2 3; do "$(printf './x\033[31m\ny')" -U true 2>&1; echo "$?"; done`)})
			out := said(t, p)
			expect.True(t, strings.Count(out, "Operation not permitted") == 3 && strings.Count(out, "\n1\n") == 3, "it heard %q", out)
			expect.Must(t, len(h.all) == 1, "told %+v", h.all)
			got := h.all[0]
			expect.True(t, got.PID > 0, "pid %d", got.PID)
			got.PID = 0
			want := Held{Run: "r", Whose: whose, Deed: "spaces", Tried: "make name spaces of its own", Usual: true, Call: "unshare", Program: "x[31my"}
			expect.Is(t, got, want, "told")
		})
	}
}

func TestAReaderThatLooksIntoAnotherProcessIsTold(t *testing.T) {
	if runnable("/usr/bin/strace") != nil {
		t.Skip("strace is not there")
	}
	var h heard
	s := hearing(t, h.take)
	p := start(t, s, Spec{Run: "r", Argv: []string{"strace", "true"}, Wall: Wall{Profile: Reader}})
	go func() { _, _ = io.Copy(io.Discard, p.Stderr) }()
	said(t, p)
	expect.Same(t, h.of("r"), []string{"look"}, "told")
}

func TestNobodyWaitsForWhoIsTold(t *testing.T) {
	release := make(chan struct{})
	var h heard
	s := hearing(t, func(r Held) {
		<-release
		h.take(r)
	})
	p := start(t, s, Spec{Run: "r", Argv: sh("unshare -U true; chroot / true; mount -t proc x /tmp; echo over"), Wall: Wall{Profile: Worker}})
	go func() { _, _ = io.Copy(io.Discard, p.Stderr) }()
	p.Stdin.Close()
	out, err := io.ReadAll(p.Stdout)
	expect.True(t, err == nil && string(out) == "over\n", "%q %v", out, err)
	p.Exit()
	got := h.of("r")
	expect.True(t, len(got) == 0, "told %q", got)
	close(release)
	said(t, p)
	got = h.of("r")
	expect.True(t, slices.Contains(got, "spaces") && slices.Contains(got, "root"), "told %q", got)
}

// TestARunThatIsRefusedAllTheTimeStandsStill has many processes wait for an
// answer most of the time.
func TestARunThatIsRefusedAllTheTimeStandsStill(t *testing.T) {
	each := func(t *testing.T, without ...string) {
		var h heard
		s := hearing(t, h.take, without...)
		exe := copiedTo(t)
		p := start(t, s, Spec{Run: "r", Argv: []string{exe, "refused"}, Wall: Wall{Profile: Worker}})
		line := make([]byte, 1)
		for range 4 {
			expect.Of(io.ReadFull(p.Stdout, line))(t)
			expect.No(t, p.Pause(t.Context()))
			for _, q := range p.left() {
				if q.PID != p.init && !q.Stopped() && !frozen(q.PID) && !stoppedGroup(p) {
					t.Errorf("%d moves: %c", q.PID, q.State)
				}
			}
			expect.No(t, p.Resume(t.Context()))
		}
		expect.Is(t, p.Stop(Grace{Interrupt: -1, Terminate: -1}), nil)
		expect.Same(t, h.of("r"), []string{"spaces"}, "told")
	}
	t.Run("all", func(t *testing.T) { each(t) })
	t.Run("no cgroup", func(t *testing.T) { each(t, layerCgroup) })
	t.Run("bare", func(t *testing.T) { each(t, layerSpaces, layerCgroup) })
}

// beRefused asks for what is refused, in several threads, and writes a byte
// after each hundred answers.
func beRefused() int {
	answers := make(chan error, 16)
	for range 4 {
		go func() {
			for {
				answers <- unix.Unshare(unix.CLONE_NEWUSER)
			}
		}()
	}
	for n := 1; ; n++ {
		if err := <-answers; err != unix.EPERM && err != unix.EINTR {
			return 1
		}
		if n%100 == 0 {
			_, _ = os.Stdout.WriteString("x")
		}
	}
}

// TestDeedsAreRefusedUnheardToo looks at the filter of a run that can have no
// listener, because another program has one.
func TestDeedsAreRefusedUnheardToo(t *testing.T) {
	for _, b := range []bounds{{profile: Worker, network: true, spaces: true}, {profile: Reader, spaces: true}} {
		heard := b
		heard.heard = true
		quiet, loud := b.filter(), heard.filter()
		expect.Must(t, len(quiet) == len(loud), "%d and %d rules", len(quiet), len(loud))
		asks := 0
		for i := range loud {
			if loud[i].Code == give && loud[i].K == unix.SECCOMP_RET_USER_NOTIF {
				asks++
				expect.True(t, quiet[i].K == refusal(unix.EPERM) || quiet[i].K == refusal(unix.EAFNOSUPPORT), "rule %d: %#x", i, quiet[i].K)
			} else if loud[i] != quiet[i] {
				t.Errorf("rule %d: %+v, unheard %+v", i, loud[i], quiet[i])
			}
		}
		expect.True(t, asks >= 30, "%d rules are heard of", asks)
	}
}

func TestEachDeedHasOneNameAndEachCallOne(t *testing.T) {
	names, calls := map[string]bool{}, map[uint32]string{}
	for _, d := range deeds {
		expect.True(t, !names[d.name] && d.tried != "", "deed %q: %q", d.name, d.tried)
		names[d.name] = true
		for _, n := range d.calls {
			expect.True(t, calls[n.call] == "" && len(n.name) <= maxCall && !slices.Contains(refused, n.call), "%s is there as %q", n.name, calls[n.call])
			calls[n.call] = n.name
			deed, name := deedBy(&call{number: n.call}, true)
			expect.True(t, deed == d.name && name == n.name, "%s of %s reads as %s of %s", n.name, d.name, name, deed)
		}
	}
	got := slices.Collect(maps.Values(calls))
	expect.True(t, len(got) >= 30, "%d calls", len(got))
	deed, _ := deedBy(&call{number: unix.SYS_GETPID}, true)
	expect.True(t, deed == "", "getpid is %q", deed)
}

func FuzzNamesOfProgramsArePrintable(f *testing.F) {
	f.Add("sh\n")
	f.Add("a\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable(s, maxProgram)
		expect.True(t, len(got) <= maxProgram && printable(got, maxProgram) == got && !strings.ContainsAny(got, "\n\r\x1b\u202e"), "%q", got)
	})
}
