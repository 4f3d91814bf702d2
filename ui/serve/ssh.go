package serve

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// Door is the way in over SSH.
type Door struct {
	HostKey gossh.Signer
	// Admit tells who comes with a key, by its fingerprint; an error sends them
	// away without a word. It is asked for every key that a client offers.
	Admit func(user, fingerprint, from string) (Who, error)
	// Settle is asked once for each session of someone let in. An error is told
	// to them, and the session ends with code 1.
	Settle func(Who) error
	// Idle is how long a connection may be without a first session; 0 means
	// 30 s. Such connections share few places.
	Idle time.Duration
	// Follow returns a channel that is closed when who is to be sent away; done
	// ends the following.
	Follow func(who Who, done <-chan struct{}) <-chan struct{}
}

// Limits of connections from elsewhere, as sshd has them.
const (
	maxConns   = 256 // at once
	maxPending = 32  // of them not let in yet
	maxTries   = 6   // keys that one may offer
	keepalive  = 30 * time.Second
	silence    = 3 // keepalives without an answer after which a connection is dead
)

// version is how this server calls itself. OpenSSH's client tells only a server
// that is called so when its reader went away, as in "ssh host … | head": see
// PROTOCOL in its sources, section 2.1.
const version = "OpenSSH_compatible_swarmdeck"

// SSH lets operators in by a listener, until Close.
func (s *Server) SSH(l net.Listener, d Door) error {
	g := &guard{idle: cmp.Or(d.Idle, 30*time.Second)}
	srv := &ssh.Server{
		HostSigners:  []ssh.Signer{d.HostKey},
		Version:      version,
		ConnCallback: g.connect,
		PublicKeyHandler: func(ctx ssh.Context, key ssh.PublicKey) bool {
			who, err := d.Admit(ctx.User(), gossh.FingerprintSHA256(key), ctx.RemoteAddr().String())
			if err != nil {
				return false
			}
			ctx.SetValue(whoKey{}, who)
			return true
		},
		ServerConfigCallback: func(ssh.Context) *gossh.ServerConfig {
			return &gossh.ServerConfig{MaxAuthTries: maxTries}
		},
	}
	s.settle = d.Settle
	return s.add(l, srv, func(ctx ssh.Context) (context.Context, Who) {
		g.letIn(ctx)
		who, _ := ctx.Value(whoKey{}).(Who)
		return watched(ctx, who, d), who
	})
}

type whoKey struct{}

// guard bounds connections.
type guard struct {
	idle time.Duration // of one that has begun no session

	mu      sync.Mutex
	open    int
	pending int
}

type pendingKey struct{}

// connect takes a connection, or nil when there are too many.
func (g *guard) connect(ctx ssh.Context, conn net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= maxConns || g.pending >= maxPending {
		return nil
	}
	g.open++
	g.pending++
	c := &guarded{Conn: conn, g: g, waits: true}
	c.late = time.AfterFunc(g.idle, func() { _ = c.Close() })
	ctx.SetValue(pendingKey{}, c)
	return c
}

// letIn frees the place of one that has proved who it is.
func (g *guard) letIn(ctx ssh.Context) {
	if c, ok := ctx.Value(pendingKey{}).(*guarded); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		if c.waits && c.late.Stop() {
			c.waits = false
			g.pending--
		}
	}
}

// guarded gives its place back when it is closed.
type guarded struct {
	net.Conn
	g      *guard
	late   *time.Timer
	waits  bool
	closed bool
}

func (c *guarded) Close() error {
	c.g.mu.Lock()
	if !c.closed {
		c.closed = true
		c.g.open--
		if c.waits {
			c.waits = false
			c.g.pending--
			c.late.Stop()
		}
	}
	c.g.mu.Unlock()
	return c.Conn.Close()
}

// watched is the context of a connection's sessions. The first one begins the
// watch over the connection.
func watched(ctx ssh.Context, who Who, d Door) context.Context {
	ctx.Lock()
	defer ctx.Unlock()
	if sessions, ok := ctx.Value(watchedKey{}).(context.Context); ok {
		return sessions
	}
	sessions, cancel := context.WithCancel(ctx)
	ctx.SetValue(watchedKey{}, sessions)
	conn, ok := ctx.Value(ssh.ContextKeyConn).(*gossh.ServerConn)
	if !ok { // it has ended
		cancel()
		return sessions
	}
	go watch(ctx, cancel, conn, d.Follow(who, ctx.Done()))
	return sessions
}

type watchedKey struct{}

// farewell is how long the sessions of someone sent away may take to end.
const farewell = 2 * time.Second

// watch ends a connection whose other end is silent, or is to go.
func watch(ctx ssh.Context, cancel context.CancelFunc, conn *gossh.ServerConn, gone <-chan struct{}) {
	defer cancel()
	tick := time.NewTicker(keepalive)
	defer tick.Stop()
	answered := make(chan struct{}, 1)
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-gone:
			cancel() // a cockpit gives the screen back
			select {
			case <-ctx.Done():
			case <-time.After(farewell):
			}
			_ = conn.Close()
			return
		case <-answered:
			missed = 0
		case <-tick.C:
			if missed++; missed > silence {
				_ = conn.Close()
				return
			}
			if missed == 1 { // one question at a time: its answer counts for all
				go func() {
					if _, _, err := conn.SendRequest("keepalive@openssh.com", true, nil); err == nil {
						answered <- struct{}{}
					}
				}()
			}
		}
	}
}

// HostKey reads a host key, or makes one that is this user's alone.
func HostKey(path string) (gossh.Signer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeHostKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the host key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the host key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("host key: %s can be read by others (%v): chmod 600 it", path, info.Mode().Perm())
	}
	signer, err := gossh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("host key %s: %w", path, err)
	}
	return signer, nil
}

func makeHostKey(path string) (gossh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	block, err := gossh.MarshalPrivateKey(key, "swarmdeck")
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep the host key: %w", err)
	}
	if err := errors.Join(pem.Encode(f, block), f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
		return nil, fmt.Errorf("keep the host key: %w", err)
	}
	return gossh.NewSignerFromKey(key)
}
