package ui

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
	"swarmdeck/ui/serve/link"
	"swarmdeck/ui/term"
)

// BenchmarkSSH shows a swarm of 1,000 agents, each of which changes ten times a
// second, to an operator who enters over SSH and types, and reports what goes
// over the wire, encryption included, when nobody types, and the time from a
// key to its echo.
func BenchmarkSSH(b *testing.B) {
	if testing.Short() {
		b.Skip("takes ten seconds each")
	}
	for _, c := range []struct {
		name  string
		shape link.Shape
		w, h  int
	}{
		{"loopback/80x24", link.Shape{}, 80, 24},
		{"loopback/120x40", link.Shape{}, 120, 40},
		{"loopback/200x50", link.Shape{}, 200, 50},
		{"300ms-32kBs/120x40", link.Shape{Delay: 150 * time.Millisecond, Rate: 32_000}, 120, 40},
		{"300ms-32kBs/200x50", link.Shape{Delay: 150 * time.Millisecond, Rate: 32_000}, 200, 50},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				overSSH(b, c.shape, c.w, c.h, 10*time.Second)
			}
		})
	}
}

// served serves the cockpit of a world over SSH.
func served(b *testing.B, w *fakeWorld) (addr string, key gossh.Signer) {
	_, private, err := ed25519.GenerateKey(nil)
	expect.No(b, err)
	key = expect.Of(gossh.NewSignerFromKey(private))(b)
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(b)
	base := rigOn(b, w, 80, 24, benchTheme(b)).m.opt // for its keymap
	base.Clock, base.After, base.Frame = nil, nil, 0
	s := serve.New(serve.Options{Split: command.Split, Run: func(ctx context.Context, s *serve.Session) int {
		opt := base
		opt.Terminal, opt.Attached, opt.Remote = s.Terminal, true, true
		caps := term.Detect(func(name string) string {
			return map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "SSH_CONNECTION": "remote"}[name]
		}, true, true, term.Flags{})
		if err := Show(ctx, opt, caps, s.Stdin, s.Stdout); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
		return 0
	}})
	b.Cleanup(func() { _ = s.Close() })
	expect.No(b, s.SSH(l, serve.Door{
		HostKey: key,
		Admit:   func(_, print, _ string) (serve.Who, error) { return serve.Who{Name: "bob", Key: print}, nil },
		Settle:  func(serve.Who) error { return nil },
		Follow:  func(serve.Who, <-chan struct{}) <-chan struct{} { return nil },
	}))
	return l.Addr().String(), key
}

// mark is typed, and stands nowhere else on the screen.
const mark = "√"

func overSSH(b *testing.B, shape link.Shape, width, height int, length time.Duration) {
	w, rng := crowd(1000), rand.New(rand.NewPCG(1, 1))
	addr, key := served(b, w)
	wire := expect.Of(link.New(addr, shape))(b)
	defer wire.Close()
	client, err := gossh.Dial("tcp", wire.Addr(), &gossh.ClientConfig{
		User: "bob", Auth: []gossh.AuthMethod{gossh.PublicKeys(key)}, HostKeyCallback: gossh.InsecureIgnoreHostKey(),
	})
	expect.No(b, err)
	defer client.Close()
	s := expect.Of(client.NewSession())(b)
	expect.No(b, s.RequestPty("xterm-256color", height, width, nil))
	keys := expect.Of(s.StdinPipe())(b)
	out := expect.Of(s.StdoutPipe())(b)
	expect.No(b, s.Shell())
	seen := make(chan time.Time, 16)
	go func() {
		in := bufio.NewReader(out)
		for {
			r, _, err := in.ReadRune()
			if err != nil {
				return
			}
			if string(r) == mark {
				seen <- time.Now()
			}
		}
	}()
	_, _ = io.WriteString(keys, ":"+mark)
	<-seen
	first := wire.Down()
	_, _ = io.WriteString(keys, "\x15") // ctrl+u

	ctx, cancel := context.WithTimeout(b.Context(), length)
	defer cancel()
	var live sync.WaitGroup
	live.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-tick.C:
				w.change(func() { churn(w, rng, time.Now()) })
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	_, _ = io.WriteString(keys, "\x1b")
	time.Sleep(2*shape.Delay + 200*time.Millisecond)
	down, up, begun := wire.Down(), wire.Up(), time.Now()
	time.Sleep(length / 2)
	down, up = wire.Down()-down, wire.Up()-up
	took := time.Since(begun)

	_, _ = io.WriteString(keys, ":") // from here on there is typing too
	var echoes []time.Duration
	for ctx.Err() == nil {
		time.Sleep(2*shape.Delay + time.Duration(60+rng.IntN(40))*time.Millisecond)
		at := time.Now()
		_, _ = io.WriteString(keys, mark)
		select {
		case t := <-seen:
			echoes = append(echoes, t.Sub(at))
		case <-time.After(5 * time.Second):
			b.Fatal("a key is not echoed")
		}
		_, _ = io.WriteString(keys, "\x15")
	}
	live.Wait()
	slices.Sort(echoes)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(first), "B/first-frames")
	b.ReportMetric(float64(down)/took.Minutes()/1e3, "kB-down/min")
	b.ReportMetric(float64(up)/took.Minutes()/1e3, "kB-up/min")
	for name, at := range map[string]int{"p50": len(echoes) / 2, "p99": len(echoes) * 99 / 100} {
		b.ReportMetric(float64(echoes[at].Microseconds())/1e3, fmt.Sprintf("ms/key-%s", name))
	}
}
