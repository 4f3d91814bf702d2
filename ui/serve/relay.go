package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/ui/keyring"
)

// Peer is another engine, as this one knows it.
type Peer struct {
	Name    string
	Address string // HOST:PORT of its Door
	Key     string // fingerprint of its key, which it has to prove
}

// Login is how an engine shows another who it is, and for whom it comes.
type Login struct {
	To    Peer
	As    gossh.Signer // the key that the other knows this one by
	Vouch Vouch
}

// DialPeer connects to another engine, for Attach with its Login.
func DialPeer(ctx context.Context, to Peer) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, fmt.Errorf("reach engine %s: %w", to.Name, err)
	}
	return c, nil
}

func (l *Login) name() string {
	if l == nil {
		return "the running engine"
	}
	return "engine " + l.To.Name
}

func (l *Login) config() *gossh.ClientConfig {
	if l == nil {
		return &gossh.ClientConfig{
			User: "swarmdeck",
			// The socket is this user's alone, and its other end proved to be too.
			HostKeyCallback: gossh.InsecureIgnoreHostKey(), //nolint:gosec // see above
		}
	}
	return &gossh.ClientConfig{
		User: peerUser, Auth: []gossh.AuthMethod{gossh.PublicKeys(l.As)},
		HostKeyCallback: func(_ string, _ net.Addr, key gossh.PublicKey) error {
			if print := gossh.FingerprintSHA256(key); print != l.To.Key {
				return fmt.Errorf("its key is %s, not %s", print, l.To.Key)
			}
			return nil
		},
	}
}

// vouch is what is said of who comes; nothing at the socket.
func (l *Login) vouch() []string {
	if l == nil {
		return nil
	}
	v := l.Vouch
	v.Protocol = relayProtocol
	return []string{varVouch + "=" + string(core.MustEncode(v))}
}

// relayPatience is how long another engine may take to begin a session, and to end
// one that was interrupted.
const relayPatience = 10 * time.Second

// Relay has another engine carry a session out, and returns what it is to end with,
// whatever the error, which its client was not told of: ErrUnbegun is in its chain
// when nothing was carried out, ErrGone when that engine went away. Env is
// what of the client's environment the other is to see, as "NAME=value".
func Relay(ctx context.Context, s *Session, login Login, env []string) (code int, err error) {
	if err := login.Vouch.Check(); err != nil {
		return exitBusy, fmt.Errorf("vouch: %w: %w", err, ErrUnbegun)
	}
	conn, err := DialPeer(ctx, login.To)
	if err != nil {
		return exitBusy, fmt.Errorf("%w: %w", err, ErrUnbegun)
	}
	a := Attachment{
		Line: s.Line, Env: env, Stdin: s.Stdin, Stdout: s.out, Stderr: s.errs,
		Login: &login, Patience: relayPatience, signer: s.Signer,
	}
	if s.Terminal != nil {
		a.screen = passedScreen{s.Terminal, s.Getenv("TERM")}
	}
	code, err = Attach(ctx, conn, a)
	switch {
	case err == nil:
		return code, nil
	case ctx.Err() != nil:
		return exitInterrupted, context.Cause(ctx)
	case errors.Is(err, ErrUnbegun):
		return exitBusy, err
	case errors.Is(err, ErrGone):
		return Gone, err
	}
	return 1, err
}

// exitInterrupted is the exit code of a session whose client ended it.
const exitInterrupted = 130

// maxSigning bounds the requests for a signature at once.
const maxSigning = 4

// forwardSigner lets the engine at the other end ask what signs here.
func forwardSigner(client *gossh.Client, open func() (io.ReadWriteCloser, error)) {
	asked := client.HandleChannelOpen(forwardedSocket)
	at := struct{ Path string }{path.Join("/", keyring.SignerPrefix+"relay")}
	if ok, _, err := client.SendRequest(forwardSocket, true, gossh.Marshal(at)); !ok || err != nil {
		return // answers stay unsigned, of which the other end says so
	}
	places := make(chan struct{}, maxSigning)
	go func() { // ends with the connection
		for in := range asked {
			select {
			case places <- struct{}{}:
				go func() {
					defer func() { <-places }()
					passSigner(in, open)
				}()
			default:
				_ = in.Reject(gossh.ResourceShortage, "too many at once")
			}
		}
	}()
}

// passSigner connects one request with what signs, until either end closes.
func passSigner(in gossh.NewChannel, open func() (io.ReadWriteCloser, error)) {
	signs, err := open()
	if err != nil {
		_ = in.Reject(gossh.ConnectionFailed, "it refuses")
		return
	}
	defer signs.Close()
	ch, reqs, err := in.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	go gossh.DiscardRequests(reqs)
	ended := core.Side(func() {
		_, _ = io.Copy(signs, ch)
		_ = signs.Close()
	})
	_, _ = io.Copy(ch, signs)
	_ = ch.Close()
	<-ended
}

// Names of OpenSSH for a socket of the server that leads to the client
// (PROTOCOL, section 2.4).
const (
	forwardSocket   = "streamlocal-forward@openssh.com"
	forwardedSocket = "forwarded-streamlocal@openssh.com"
)

// forwarded is the key of the path that a connection's client forwards.
type forwarded struct{}

// forward takes the one socket that a client may forward: by which it signs. Nothing
// listens there; the path only names it.
func forward(ctx ssh.Context, _ *ssh.Server, req *gossh.Request) (ok bool, _ []byte) {
	var want struct{ Path string }
	if gossh.Unmarshal(req.Payload, &want) != nil || len(want.Path) > 256 || !strings.HasPrefix(path.Base(want.Path), keyring.SignerPrefix) {
		return false, nil
	}
	ctx.SetValue(forwarded{}, want.Path)
	return true, nil
}

// signer connects to what signs at the client; nil for one that forwards none.
func signer(ctx ssh.Context, conn *gossh.ServerConn) func() (io.ReadWriteCloser, error) {
	at, ok := ctx.Value(forwarded{}).(string)
	if !ok {
		return nil
	}
	return func() (io.ReadWriteCloser, error) {
		ch, reqs, err := conn.OpenChannel(forwardedSocket, gossh.Marshal(struct{ Path, Reserved string }{at, ""}))
		if refused := (*gossh.OpenChannelError)(nil); errors.As(err, &refused) {
			err = errors.New("it refuses")
		}
		if err != nil {
			return nil, fmt.Errorf("reach the machine that the operator sits at: %w", err)
		}
		go gossh.DiscardRequests(reqs) // ends with the channel
		return ch, nil
	}
}
