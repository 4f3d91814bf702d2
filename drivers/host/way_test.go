package host_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell"
	driver "swarmdeck/drivers/host"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
	"swarmdeck/expect"
)

// gate takes the ways out of a box.
type gate struct {
	mu   sync.Mutex
	came []driver.Way
	over []string
}

func (g *gate) take(w driver.Way) {
	g.mu.Lock()
	g.came = append(g.came, w)
	g.mu.Unlock()
	defer w.Close()
	r := bufio.NewReader(w)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if line == "much\n" {
			line = strings.Repeat("x", 1<<20) + "\n"
		}
		fmt.Fprint(w, "heard ", line)
		if line == "enough\n" {
			return
		}
	}
}

func (g *gate) ended(_ cell.Whose, run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = append(g.over, run)
}

func (g *gate) all() []driver.Way {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]driver.Way(nil), g.came...)
}

func (g *gate) overs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.over...)
}

// walled skips where the host's side has no network of its own to give.
func (b *box) walled() {
	b.Helper()
	if l := b.pool.Link("t_home", "box"); len(l.Lacks) > 0 {
		b.Skip("the wall lacks", l.Lacks)
	}
}

// script runs one in bash, which can connect by itself, and returns what it says.
func (b *box) script(text string, reach ...int) (string, keeper.Process) {
	b.Helper()
	p := b.worker(text, reach...)
	_, outs, _ := p.Streams()
	o := collect(outs)
	p.Exit()
	expect.No(b, p.Stop(cell.Grace{}))
	return o.all(), p
}

func (b *box) worker(text string, reach ...int) keeper.Process {
	b.Helper()
	p, err := b.pool.Start("t_home", "box", cell.Spec{
		Argv: []string{"bash", "-c", text}, Whose: cell.Whose{Tenant: "t_home", Agent: "A", Role: "r"}, Limits: cell.DefaultLimits(),
		Wall: cell.Wall{Profile: cell.Worker, Reach: reach},
	}, keeper.Hosted{})
	expect.No(b, err)
	return p
}

func TestAWorkersOnlyWayOutIsTheEngine(t *testing.T) {
	b := newBox(t, nil)
	b.walled()
	away, err := net.Listen("tcp", "127.0.0.1:0") // of the host's own loopback, as it were
	expect.No(t, err)
	defer away.Close()
	_, port, _ := net.SplitHostPort(away.Addr().String())
	said, p := b.script(`echo $http_proxy
exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r x <&3; echo "$x"
echo much >&3; read -r x <&3; echo ${#x}
echo enough >&3; read -r x <&3; echo "$x"; read -r x <&3 || echo over
exec 4<>/dev/tcp/127.0.0.1/1080; echo socks >&4; read -r x <&4; echo "$x"
(exec 5<>/dev/tcp/127.0.0.1/` + port + `) 2>/dev/null || echo nowhere else`)
	p.CloseIO()
	want := "http://127.0.0.1:3128\nheard hello\n1048582\nheard enough\nover\nheard socks\nnowhere else\n"
	expect.Is(t, said, want)
	came := b.gate.all()
	expect.Must(t, len(came) == 2 && came[0].Port == cell.PortHTTP && came[1].Port == cell.PortSOCKS, "%+v", came)
	for _, w := range came {
		if w.Whose.Tenant != "t_home" || w.Whose.Agent != "A" || w.Whose.Role != "r" || w.Run != "agent:t_home:A" || w.Profile != cell.Worker || w.Process != "bash" || w.PID == 0 {
			t.Errorf("%+v", w)
		}
	}
	b.await("the end of the run is told", func() bool { return len(b.gate.overs()) == 1 })
	got := b.gate.overs()
	expect.True(t, got[0] == "agent:t_home:A", "%v", got)
}

func TestARunReachesThePortsOfTheEngineThatItWasGiven(t *testing.T) {
	b := newBox(t, nil)
	b.walled()
	given, other := echoing(t), echoing(t)
	said, p := b.script(fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d; echo hello >&3; read -r x <&3; echo "$x"
(exec 4<>/dev/tcp/127.0.0.1/%d) 2>/dev/null || echo refused`, given, other), given)
	defer p.CloseIO()
	expect.Is(t, said, "hello\nrefused\n")
}

// echoing is a port that says again what it hears.
func echoing(t *testing.T) (port int) {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestAConnectionBreaksWithItsLinkAndTheNextOneGoes(t *testing.T) {
	b := newBox(t, nil)
	b.walled()
	p := b.worker(`exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r x <&3; echo "$x"; read -r x <&3 || echo broken
(exec 3<>/dev/tcp/127.0.0.1/3128; echo lost >&3; read -r x <&3 && echo "$x" || echo nothing) 2>/dev/null; touch tried
read -r go; exec 3<>/dev/tcp/127.0.0.1/3128; echo again >&3; read -r x <&3; echo "$x"; read -r x`)
	defer end(p)
	in, outs, _ := p.Streams()
	lines := bufio.NewScanner(outs)
	see := func(want string) {
		t.Helper()
		expect.Must(t, lines.Scan() && lines.Text() == want, "%q, want %q", lines.Text(), want)
	}
	see("heard hello")
	free := b.block()
	b.await("it has tried without a link", func() bool {
		tried, _ := filepath.Glob(filepath.Join(b.home, ".cache/swarmdeck.away/keeper-*/agents/A/work/tried"))
		return len(tried) == 1
	})
	free()
	see("broken")
	see("nothing")
	b.await("it is up", func() bool { return b.state() == "up" })
	fmt.Fprintln(in, "go")
	see("heard again")
	expect.Is(t, len(b.gate.all()), 2, "connections:")
}

func TestARunHasNoMoreConnectionsThanItMay(t *testing.T) {
	b := newBox(t, nil)
	b.walled()
	p := b.worker(fmt.Sprintf(`for i in $(seq %d); do eval "exec $((10+i))<>/dev/tcp/127.0.0.1/3128"; echo hi >&$((10+i)); done
for i in $(seq %d); do read -r x <&$((10+i)) && n=$((n+1)); done; echo $n
exec 10<>/dev/tcp/127.0.0.1/3128; echo one >&10; read -r x <&10 || echo none
exec 11>&-; sleep 0.3; exec 10<>/dev/tcp/127.0.0.1/3128; echo one >&10; read -r x <&10; echo $x; read -r x`, wire.MaxWaysOfRun, wire.MaxWaysOfRun))
	defer end(p)
	_, outs, _ := p.Streams()
	lines := bufio.NewScanner(outs)
	for _, want := range []string{fmt.Sprint(wire.MaxWaysOfRun), "none", "heard one"} {
		expect.Must(t, lines.Scan() && lines.Text() == want, "%q, want %q", lines.Text(), want)
	}
	expect.No(t, end(p))
	b.await("the end of the run is told", func() bool { return len(b.gate.overs()) == 1 })
}
