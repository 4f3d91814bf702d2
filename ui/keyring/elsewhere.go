package keyring

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/term"
)

// SignerPrefix begins the name of the socket by which a machine asks the one that
// its operator sits at for a signature, as in "ssh -R /tmp/swarmdeck-signer-…:…".
const SignerPrefix = "swarmdeck-signer-"

// SignerVariable names that socket to a program that an sshd started.
const SignerVariable = "SWARMDECK_SIGNER"

// Confirming is how long somebody may look at what they are to sign.
const Confirming = 2 * time.Minute

// asking is how long a request may take to come.
const asking = 10 * time.Second

// maxAsked bounds a request and its reply, in bytes.
const maxAsked = 64 << 10

// request is what the other machine wants signed, and reply what it gets: one line of
// JSON each. A connection has one of both.
type request struct {
	Statement string   `json:"statement"`
	Keys      []string `json:"keys"` // fingerprints of those that may sign
}

type reply struct {
	Signature string `json:"signature,omitempty"` // SSHSIG, armored
	Error     string `json:"error,omitempty"`
}

// Ask has a statement of an answer signed by who sits at the other end of a
// connection, which it closes.
func Ask(conn io.ReadWriteCloser, statement string, keys []operator.Key) (armored []byte, err error) {
	defer conn.Close()
	defer time.AfterFunc(Confirming+touch, func() { _ = conn.Close() }).Stop()
	asked := request{Statement: statement, Keys: core.Map(keys, func(k operator.Key) string { return k.Fingerprint })}
	var got reply
	_, err = conn.Write(append(core.MustEncode(asked), '\n'))
	if err == nil {
		err = readLine(conn, &got)
	}
	switch {
	case err != nil:
		return nil, core.Errorf(core.Unavailable, "signature: the machine that you sit at gave none: %v", err).With("field", "signature")
	case got.Signature == "":
		why := term.Clean(core.ClipTo(cmp.Or(got.Error, "no reason given"), 240))
		return nil, core.Errorf(core.Denied, "signature: not signed at the machine that you sit at: %s", why).With("field", "signature")
	}
	return []byte(got.Signature), nil
}

// ErrUnsure is why sure does not want a statement signed.
var ErrUnsure = errors.New("you said no, or nothing")

// Sure shows a statement and asks whether to sign it; signed is called once that is
// done. Its context ends when the other machine no longer waits.
type Sure func(ctx context.Context, s judge.Statement) (signed func(), err error)

// Answer takes one request from another machine, and signs when sure has no error.
// Nothing is signed but a statement of an answer, in that namespace. It closes conn.
func Answer(ctx context.Context, conn net.Conn, open func() (*Ring, error), sure Sure) error {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	defer conn.Close()
	signature, err := answer(ctx, gone, conn, open, sure)
	said := reply{Signature: string(signature)}
	if err != nil {
		said.Error = core.AsError(err).Message
	}
	_, failed := conn.Write(append(core.MustEncode(said), '\n'))
	return errors.Join(err, failed)
}

func answer(ctx context.Context, gone func(), conn net.Conn, open func() (*Ring, error), sure Sure) ([]byte, error) {
	var asked request
	_ = conn.SetReadDeadline(time.Now().Add(asking))
	if err := readLine(conn, &asked); err != nil {
		return nil, err
	}
	s, err := judge.ParseStatement([]byte(asked.Statement))
	if err != nil {
		return nil, err
	}
	keys := core.Map(asked.Keys, func(print string) operator.Key { return operator.Key{Fingerprint: print} })
	ring, err := open()
	if err != nil {
		return nil, err
	}
	defer ring.Close()
	if len(ring.have(keys)) == 0 {
		return nil, core.Errorf(core.NotFound, "no key of %s is there: give one with --key FILE, or add it to ssh-agent", s.Operator)
	}
	_ = conn.SetReadDeadline(time.Time{})
	go func() { // ends when conn is closed, by either end
		_, _ = conn.Read(make([]byte, 1))
		gone()
	}()
	signed, err := sure(ctx, s)
	if err != nil {
		return nil, err
	}
	defer signed()
	return ring.Sign(judge.SignNamespace, asked.Statement, keys)
}

// readLine reads one line of JSON.
func readLine(from io.Reader, into any) error {
	line, err := bufio.NewReader(io.LimitReader(from, maxAsked)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return core.Errorf(core.InvalidInput, "not one line of at most %d KiB", maxAsked>>10)
	}
	if err != nil {
		return err
	}
	return core.Decode(line, into)
}

// Forget removes the socket that an sshd made for this program to ask by; it leaves
// them behind.
func Forget(getenv func(string) string) {
	if at := getenv(SignerVariable); strings.HasPrefix(filepath.Base(at), SignerPrefix) {
		_ = os.Remove(at)
	}
}
