package serve_test

import (
	"context"
	"crypto/ed25519"
	"net"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
)

// TestWhoOpensNoSessionIsSentAway has one key take every place of those who
// have not begun, which would shut all others out.
func TestWhoOpensNoSessionIsSentAway(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	expect.No(t, err)
	signer := expect.Of(gossh.NewSignerFromKey(key))(t)
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := serve.New(serve.Options{Split: command.Split, Run: func(ctx context.Context, s *serve.Session) int {
		if s.Args[0] == "stay" {
			<-ctx.Done()
		}
		return 0
	}})
	t.Cleanup(func() { _ = s.Close() })
	expect.No(t, s.SSH(l, serve.Door{
		HostKey: signer, First: 500 * time.Millisecond,
		Admit:  func(string, string, string) (serve.Who, error) { return serve.Who{Name: "bob"}, nil },
		Settle: func(serve.Who) error { return nil },
		Follow: func(serve.Who, <-chan struct{}) <-chan struct{} { return nil },
	}))
	dial := func() (*gossh.Client, error) {
		c, err := gossh.Dial("tcp", l.Addr().String(), &gossh.ClientConfig{
			User: "bob", Auth: []gossh.AuthMethod{gossh.PublicKeys(signer)}, HostKeyCallback: gossh.InsecureIgnoreHostKey(), Timeout: 5 * time.Second,
		})
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return c, err
	}
	busy := expect.Of(dial())(t)
	works, err := busy.NewSession()
	if err == nil {
		err = works.Start("stay")
	}
	expect.No(t, err)
	for range 40 {
		_, _ = dial()
	}
	expect.Await(t, "somebody gets in again", func() bool {
		c, err := dial()
		if err != nil {
			return false
		}
		n, err := c.NewSession()
		return err == nil && n.Run("go") == nil
	})
	more, err := busy.NewSession()
	expect.True(t, err == nil && more.Run("go") == nil, "who has a session was sent away: %v", err)
}

// TestAChannelThatBeginsNothingKeepsNoConnection has a client open a session's
// channel and never say what it is for.
func TestAChannelThatBeginsNothingKeepsNoConnection(t *testing.T) {
	g := newGate(t, serve.Options{}, serve.Door{First: 300 * time.Millisecond})
	idle := g.enter("127.0.0.1")
	expect.Of(idle.NewSession())(t)
	gone := make(chan struct{})
	go func() {
		_ = idle.Wait()
		close(gone)
	}()
	expect.From(t, gone, "it keeps its connection")
}
