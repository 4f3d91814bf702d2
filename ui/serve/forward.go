package serve

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/ui/keyring"
)

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
