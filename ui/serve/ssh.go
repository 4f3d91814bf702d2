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
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
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
	// Peer names the engine whose key has a fingerprint, in 1-64 of a-z A-Z 0-9 _ . -;
	// nil knows none. It is asked for each session too.
	Peer func(fingerprint string) (name string, ok bool)
	// Vouched is Settle for someone whom a peer vouches for: it tells who they are
	// here, and in which role. Nil is with a nil Peer.
	Vouched func(Who) (Who, error)
	// First is how long a connection may be without a first session; 0 means
	// 30 s. Such connections share few places.
	First time.Duration
	// Refused is told of each connection that was not let in, and from where;
	// nil is not. It is called from many goroutines and does not wait.
	Refused func(why Refusal, from string)
	// Crowded is told of each connection of someone known that was not let in
	// because their key has too many; nil is not. It is called from many
	// goroutines.
	Crowded func(who Who, why error)
	// Follow returns a channel that is closed when the client of a session is to be
	// sent away; nil is never. It is asked once Settle or Vouched had no error, and
	// done ends the following.
	Follow func(who Who, done <-chan struct{}) <-chan struct{}
}

// version is how this server calls itself. OpenSSH's client tells only a server
// that is called so when its reader went away, as in "ssh host … | head": see
// PROTOCOL in its sources, section 2.1.
const version = "OpenSSH_compatible_swarmdeck"

// SSH lets operators in by a listener, until Close.
func (s *Server) SSH(l net.Listener, d Door) error {
	g := newGuard(s.lim, cmp.Or(d.First, 30*time.Second), d.Refused)
	srv := &ssh.Server{
		HostSigners:  []ssh.Signer{d.HostKey},
		Version:      version,
		ConnCallback: g.connect,
		PublicKeyHandler: func(ctx ssh.Context, key ssh.PublicKey) bool {
			print := gossh.FingerprintSHA256(key)
			who, is := d.peer(ctx.User(), print)
			if !is {
				var err error
				if who, err = d.Admit(ctx.User(), print, ctx.RemoteAddr().String()); err != nil {
					return false
				}
			}
			pendingOf(ctx).wait(proof) // time to prove a key that opens something
			ctx.SetValue(whoKey{}, who)
			return true
		},
		ServerConfigCallback: func(ctx ssh.Context) *gossh.ServerConfig {
			return &gossh.ServerConfig{
				MaxAuthTries: maxTries,
				VerifiedPublicKeyCallback: func(_ gossh.ConnMetadata, key gossh.PublicKey, p *gossh.Permissions, _ string) (*gossh.Permissions, error) {
					who, _ := ctx.Value(whoKey{}).(Who)
					if err := g.hold(ctx, gossh.FingerprintSHA256(key), who.Peer != ""); err != nil {
						if who.Peer == "" && d.Crowded != nil {
							d.Crowded(who, err)
						}
						return nil, &gossh.BannerError{Err: err, Message: "swarmdeck: " + err.Error() + "\r\n"}
					}
					return p, nil
				},
				AuthLogCallback: func(_ gossh.ConnMetadata, _ string, err error) {
					if err == nil {
						pendingOf(ctx).wait(g.waits) // time for a first session
					}
				},
			}
		},
		RequestHandlers:          map[string]ssh.RequestHandler{forwardSocket: forward},
		ConnectionFailedCallback: g.failed,
		HandshakeTimeout:         greeting + proof,
	}
	s.door = d
	return s.add(l, srv, g, func(ctx ssh.Context) (context.Context, Who) {
		who, _ := ctx.Value(whoKey{}).(Who)
		return watched(ctx), who
	})
}

// peer is the engine that has a key and comes as one; false is an operator, or
// a stranger.
func (d Door) peer(user, fingerprint string) (Who, bool) {
	if user != peerUser || d.Peer == nil {
		return Who{}, false
	}
	name, ok := d.Peer(fingerprint)
	if !ok || !core.IsAgent(name) { // it becomes part of proofs
		return Who{}, false
	}
	return Who{Peer: name, peerKey: fingerprint}, true
}

// settle tells whether a session of someone may begin, and who they are.
func (d Door) settle(who *Who) (err error) {
	if who.Peer == "" {
		return d.Settle(*who)
	}
	if now, ok := d.Peer(who.peerKey); !ok || now != who.Peer {
		return fmt.Errorf("vouch: the key of engine %s is not known any more", who.Peer)
	}
	*who, err = d.Vouched(*who)
	return err
}

type whoKey struct{}

// watched is the context of a connection's sessions. The first one begins the
// watch over the connection.
func watched(ctx ssh.Context) context.Context {
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
	go watch(ctx, cancel, conn)
	return sessions
}

type watchedKey struct{}

// farewell is how long the sessions of someone sent away may take to end.
const farewell = 2 * time.Second

// watch ends a connection whose other end is silent.
func watch(ctx ssh.Context, cancel func(), conn *gossh.ServerConn) {
	defer cancel()
	tick := time.NewTicker(keepalive)
	defer tick.Stop()
	answered := make(chan struct{}, 1)
	missed := 0
	for {
		select {
		case <-ctx.Done():
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
