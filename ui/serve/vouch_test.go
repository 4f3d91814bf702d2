package serve_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/expect"
	"swarmdeck/ui/serve"
)

// ask has a client of the second engine's door run a command with some vouches.
func ask(t *testing.T, c *gossh.Client, vouches ...string) (code int, said string) {
	t.Helper()
	s := expect.Of(c.NewSession())(t)
	defer s.Close()
	var errs bytes.Buffer
	s.Stderr = &errs
	for _, v := range vouches {
		expect.No(t, s.Setenv("SWARMDECK_SESSION_VOUCH", v))
	}
	err := s.Run("go")
	var exit *gossh.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitStatus()
	}
	return code, errs.String()
}

// enterAs comes to a door by name and key.
func enterAs(t *testing.T, addr, user string, key gossh.Signer) (*gossh.Client, error) {
	c, err := gossh.Dial("tcp", addr, &gossh.ClientConfig{
		User: user, Auth: []gossh.AuthMethod{gossh.PublicKeys(key)}, HostKeyCallback: gossh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second,
	})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

const goodVouch = `{"tenant":"t_acme","name":"ann","user":1000}`

func TestAVouchIsReadStrictly(t *testing.T) {
	p := newPair(t, func(context.Context, *serve.Session) int { return 0 })
	c := expect.Of(enterAs(t, p.login.To.Address, "engine", p.key))(t)
	code, said := ask(t, c, goodVouch)
	expect.True(t, code == 0 && said == "", "exit %d, %s", code, said)
	for vouch, says := range map[string]string{
		``:                                 "not valid JSON",
		`{}`:                               "tenant_id",
		goodVouch + goodVouch:              "not valid JSON",
		`{"tenant":"t_acme"}`:              "name: ",
		`{"tenant":"t_acme","name":"ann"}`: "one of both",
		`{"tenant":"t_acme","name":"ann\n","user":1}`:                    "name: ",
		`{"tenant":"t_acme","name":"ann","user":-1}`:                     "user: ",
		`{"tenant":"t_acme","name":"ann","key":"uid:0"}`:                 "fingerprint",
		`{"tenant":"t_acme","name":"ann","user":1,"role":"admin"}`:       "unknown field",
		`{"tenant":"t_acme","name":"ann","user":1,"seat":"\u001b[2J"}`:   "seat: ",
		`{"protocol":2,"tenant":"t_acme","who":{"name":"ann"}}`:          "by protocol 2 and this one by 1: upgrade the older",
		`{"tenant":"t_acme","name":"` + strings.Repeat("x", 4096) + `"}`: "at most 2048",
	} {
		if code, said := ask(t, c, vouch); code != 1 || !strings.HasPrefix(said, "swarmdeck: vouch: ") || !strings.Contains(said, says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%.80s: exit %d, %q", vouch, code, said)
		}
	}
	code, said = ask(t, c, goodVouch, goodVouch)
	expect.True(t, code == 1 && strings.Contains(said, "given twice"), "two: exit %d, %s", code, said)
	code, said = ask(t, c)
	expect.True(t, code == 1 && strings.Contains(said, "deck1 names nobody"), "none: exit %d, %s", code, said)
	expect.Is(t, len(p.asked()), 1, "asked for")
}

// TestOnlyAnEngineVouches has an operator and a process of this user try it.
func TestOnlyAnEngineVouches(t *testing.T) {
	p := newPair(t, tell)
	code, said := ask(t, p.first.enter("127.0.0.1"), goodVouch)
	expect.True(t, code == 1 && strings.Contains(said, "only another engine"), "exit %d, %s", code, said)
	var errs bytes.Buffer
	code, err := p.socket.attach(t.Context(), serve.Attachment{Line: "go", Env: []string{"SWARMDECK_SESSION_VOUCH=" + goodVouch}, Stderr: &errs})
	expect.True(t, code == 1 && err == nil && strings.Contains(errs.String(), "only another engine"), "exit %d, %v, %s", code, err, errs.String())
	expect.Fails(t, expect.Fault(enterAs(t, p.login.To.Address, "engine", newKey(t))), "a stranger came in as an engine")
	expect.Fails(t, expect.Fault(enterAs(t, p.login.To.Address, "bob", p.key)), "an engine came in as an operator")
}

// TestAnEngineTakesNoPlaceOfOthers has a door with room for three connections.
func TestAnEngineTakesNoPlaceOfOthers(t *testing.T) {
	key := newKey(t)
	var known atomic.Bool
	known.Store(true)
	gone := make(chan struct{})
	g := newGate(t, serve.Options{Limits: serve.Limits{Connections: 3, PerAddress: 3, PerKey: 1, Sessions: 40}}, serve.Door{
		Peer: func(print string) (string, bool) {
			return "deck1", known.Load() && print == gossh.FingerprintSHA256(key.PublicKey())
		},
		Vouched: func(who serve.Who) (serve.Who, error) { return who, nil },
		Follow: func(who serve.Who, _ <-chan struct{}) <-chan struct{} {
			if who.Name == "eve" {
				return gone
			}
			return nil
		},
	})
	host := func() serve.Peer {
		var print string
		_, _ = gossh.Dial("tcp", g.addr, &gossh.ClientConfig{HostKeyCallback: func(_ string, _ net.Addr, k gossh.PublicKey) error {
			print = gossh.FingerprintSHA256(k)
			return errors.New("seen")
		}})
		return serve.Peer{Name: "deck2", Address: g.addr, Key: print}
	}()
	relay := func(ctx context.Context, name, line string) (int, string) {
		conn := expect.Of(serve.DialPeer(ctx, host))(t)
		user := uint32(len(line)) // another for each
		var out, errs bytes.Buffer
		code, err := serve.Attach(ctx, conn, serve.Attachment{
			Line: line, Stdout: &out, Stderr: &errs,
			Login: &serve.Login{To: host, As: key, Vouch: serve.Vouch{Tenant: "t_acme", Name: name, User: &user}},
		})
		if err != nil {
			return -1, err.Error()
		}
		return code, errs.String()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	var crowd []*gossh.Client
	for range 8 {
		c := expect.Of(enterAs(t, g.addr, "engine", key))(t)
		crowd = append(crowd, c)
	}
	go func() {
		_, said := relay(ctx, "eve", "stay")
		ended <- said
	}()
	g.stay(g.enter("127.0.0.1"), false)
	code, said := relay(ctx, "ann", "go")
	expect.True(t, code == 0, "exit %d, %s", code, said)
	close(gone)
	expect.Has(t, <-ended, "connect again", "who has to go is told")
	known.Store(false)
	code, said = ask(t, crowd[0], goodVouch)
	expect.True(t, code == 1 && strings.Contains(said, "not known any more"), "exit %d, %s", code, said)
	cancel()
	known.Store(true)
	for {
		if _, err := enterAs(t, g.addr, "engine", key); err != nil {
			break
		}
		crowd = append(crowd, nil)
		expect.Must(t, len(crowd) <= 100, "an engine may have any number of connections")
	}
}
