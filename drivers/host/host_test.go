package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/host"
	"swarmdeck/expect"
)

func TestAProcessRunsThere(t *testing.T) {
	b := newBox(t, nil)
	p := b.start("sh", "-c", "echo ready; read x; echo got $x; echo bad >&2; exit 3")
	in, outs, errs := p.Streams()
	o, e := collect(outs), collect(errs)
	fmt.Fprintln(in, "hello")
	x := p.Exit()
	expect.True(t, x.Code == 3 && x.Describe() == "exited with status 3", "%v", x)
	expect.No(t, p.Stop(cell.Grace{}))
	if o.all() != "ready\ngot hello\n" || e.all() != "bad\n" || p.Unread() || p.PID() == 0 {
		t.Errorf("%q %q %v %d", o.String(), e.String(), p.Unread(), p.PID())
	}
	p.CloseIO()
}

func TestWhatCantBeStartedSaysWhy(t *testing.T) {
	b := newBox(t, nil)
	_, err := b.try("no-such-program")
	expect.Err(t, err, os.ErrNotExist)
	expect.Err(t, expect.Fault(b.try("/etc/passwd")), os.ErrPermission)
	_, err = b.pool.Start("t_other", "box", cell.Spec{Argv: []string{"true"}}, keeper.Hosted{})
	expect.Says(t, err, "can't be reached", "another tenant has it")
}

func TestALinkThatIsCutLosesAndRepeatsNothing(t *testing.T) {
	b := newBox(t, func(h *host.Host) { h.LeaseS = 60 })
	p := b.start("sh", "-c", "n=0; while read x; do n=$((n+1)); echo $n $x; done")
	defer end(p)
	in, outs, _ := p.Streams()
	lines := bufio.NewScanner(outs)
	const all = 300
	cut := make(chan bool, all) // before more is said
	go func() {
		for i := range all {
			fmt.Fprintln(in, "line", i)
			if i%100 == 50 {
				<-cut
			}
		}
	}()
	for i := range all {
		if i%100 == 20 {
			for _, pid := range b.keepers("link") {
				_ = kill(pid)
			}
			cut <- true
		}
		if !lines.Scan() || lines.Text() != fmt.Sprintf("%d line %d", i+1, i) {
			t.Fatalf("line %d: %q %v", i, lines.Text(), lines.Err())
		}
	}
}

func TestAProcessGoesOnWithoutALinkAndItsEndArrives(t *testing.T) {
	b := newBox(t, func(h *host.Host) { h.LeaseS = 60 })
	p := b.start("sh", "-c", "echo before; read x; echo $x > word; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i 0123456789; done; touch done; exit 7")
	in, outs, _ := p.Streams()
	o := collect(outs)
	free := b.block()
	fmt.Fprintln(in, "late") // it arrives with the link
	expect.Still(t, p.Ended, "it has ended")
	free()
	x := p.Exit()
	expect.True(t, x.Code == 7, "%v", x)
	expect.No(t, end(p))
	expect.Is(t, strings.Count(o.all(), "\n"), 2001)
}

func TestTheLeaseEndsWhatNobodyComesBackFor(t *testing.T) {
	b := newBox(t, nil)
	work := filepath.Join(b.home, ".cache", "swarmdeck.away")
	p := b.start("sh", "-c", "while :; do echo x >> beat; sleep 0.05; done")
	o := collect(func() *os.File { _, out, _ := p.Streams(); return out }())
	free := b.block()
	x := p.Exit()
	expect.Has(t, x.Describe(), "away for longer than 5s")
	beats, err := filepath.Glob(filepath.Join(work, "keeper-*", "agents", "A", "work", "beat"))
	expect.Must(t, err == nil && len(beats) == 1, "%v %v", beats, err)
	size := func() int64 {
		info := expect.Of(os.Stat(beats[0]))(t)
		return info.Size()
	}
	expect.Still(t, size, "it goes on there")
	b.await("its keeper has gone", func() bool { return len(b.keepers("")) == 0 })
	o.all()
	expect.No(t, end(p))
	free()
	b.await("it is up", func() bool { return b.state() == host.Up })
	expect.No(t, end(b.start("true")))
}

func TestAProcessThereIsPausedAndResumed(t *testing.T) {
	b := newBox(t, nil)
	p := b.start("sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done")
	defer end(p)
	_, outs, _ := p.Streams()
	lines := bufio.NewScanner(outs)
	lines.Scan()
	ctx := context.Background()
	expect.No(t, p.Pause(ctx))
	came := make(chan string)
	go func() {
		for lines.Scan() {
			came <- lines.Text()
		}
		close(came)
	}()
	quiet := func() bool {
		for {
			select {
			case <-came:
			case <-time.After(300 * time.Millisecond):
				return true
			}
		}
	}
	expect.True(t, quiet(), "it goes on")
	expect.No(t, p.Resume(ctx))
	<-came
	go func() {
		for range came {
		}
	}()
	free := b.block()
	expect.Says(t, p.Pause(ctx), "not in effect before the link is back")
	free()
}

func TestClearingAHostLeavesNothing(t *testing.T) {
	b := newBox(t, nil)
	p := b.start("sh", "-c", "sleep 1000 & sleep 1000")
	defer p.CloseIO()
	b.leave()
	expect.No(t, b.pool.Clear(context.Background(), b.host))
	b.await("they are gone", func() bool { return len(b.keepers("")) == 0 })
	there, err := os.ReadDir(filepath.Join(b.home, ".cache", "swarmdeck"))
	expect.True(t, errors.Is(err, os.ErrNotExist), "%v %v", there, err)
	b.enter()
}

func TestAnotherStartOfTheEngineEndsWhatTheFormerLeft(t *testing.T) {
	b := newBox(t, func(h *host.Host) { h.LeaseS = 60 })
	p := b.start("sh", "-c", "touch here; sleep 1000")
	defer p.CloseIO()
	b.leave()
	var holder []int
	b.await("there is one keeper", func() bool { // one that begins something looks like two
		holder = b.keepers("hold")
		return len(holder) == 1
	})
	b.pool = b.again()
	b.enter()
	b.await("its keeper is the one that was there", func() bool { return fmt.Sprint(b.keepers("hold")) == fmt.Sprint(holder) })
	expect.Is(t, b.pool.Link("t_home", "box").Runs, 0)
	b.agents = nil
	b.leave()
	b.enter()
	b.await("the place of an agent that is no more goes", func() bool {
		left, _ := filepath.Glob(filepath.Join(b.home, ".cache/swarmdeck/keeper-*/agents/A"))
		return len(left) == 0
	})
}
