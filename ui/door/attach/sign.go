package attach

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/keyring"
	"swarmdeck/ui/term"
)

// signer signs what the other machine asks for, when who sits here says so.
type signer struct {
	desk  *desk
	host  string
	key   string // file of the private key; "" asks ssh-agent
	leave func()
}

// listen opens the socket of requests.
func (s *signer) listen(ctx context.Context) (path string, end func(), err error) {
	dir, err := os.MkdirTemp("", "swarmdeck-") // 0700: nobody else's process asks
	if err != nil {
		return "", nil, fmt.Errorf("make a directory for the socket: %w", err)
	}
	path = filepath.Join(dir, "sign")
	l, err := net.Listen("unix", path)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, fmt.Errorf("listen for what is to be signed: %w", err)
	}
	go s.serve(ctx, l) // ends with l
	return path, func() { _ = l.Close(); _ = os.RemoveAll(dir) }, nil
}

// serve takes one request at a time until l is closed.
func (s *signer) serve(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		open := func() (*keyring.Ring, error) { return keyring.Open(s.key, os.Getenv("SSH_AUTH_SOCK")) }
		_ = keyring.Answer(ctx, conn, open, s.sure) // the other machine is told why not, and shows it
	}
}

// dead is how long a question takes no answer: what is typed when it comes was not
// meant for it.
const dead = 500 * time.Millisecond

// sure shows a statement and asks whether it is to be signed. Once it is, signed gives
// the terminal back.
func (s *signer) sure(ctx context.Context, st judge.Statement) (signed func(), err error) {
	s.desk.show.Lock() // the other machine shows nothing meanwhile
	typed, done := make(typing), make(chan struct{})
	ssh := s.desk.give(typed.until(done))
	begin, over, again := "\r\n", "\r\n", []byte{}
	if s.desk.out.Screen {
		begin = ansi.PushKittyKeyboard(0) + ansi.ResetModeSynchronizedOutput + ansi.ResetStyle + ansi.EraseEntireScreen + ansi.CursorHomePosition
		over = ansi.EraseEntireScreen + ansi.CursorHomePosition + ansi.PopKittyKeyboard(1)
		again = []byte{redraw}
	}
	signed = func() {
		s.desk.say([]byte(over))
		close(done)
		s.desk.give(ssh)
		s.desk.show.Unlock()
		if ssh != nil {
			_, _ = ssh.Write(again)
		}
	}
	s.desk.say([]byte(begin + strings.Join(words(s.host, st), "\r\n")))
	if err := s.wait(ctx, typed); err != nil {
		signed()
		return nil, err
	}
	s.desk.say([]byte("signing; touch your key if it wants that"))
	return signed, nil
}

// redraw is ctrl+l, at which a full-screen program draws its screen anew.
const redraw = 0x0c

// wait waits for the answer to a question.
func (s *signer) wait(ctx context.Context, typed typing) error {
	late := time.NewTimer(keyring.Confirming)
	defer late.Stop()
	armed := time.Now().Add(dead)
	for {
		select {
		case key := <-typed:
			switch {
			case key == "\x03":
				s.leave()
				return keyring.ErrUnsure
			case time.Now().Before(armed):
			case key == "y":
				return nil
			case key == "n", key == "\x1b":
				return keyring.ErrUnsure
			}
		case <-late.C:
			return keyring.ErrUnsure
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// typing is what is typed at a question, as it comes: a key alone is one piece, and
// what was pasted never is.
type typing chan string

// until is a writer to it that drops what nobody waits for any more.
func (t typing) until(done <-chan struct{}) writer {
	return func(p []byte) (int, error) {
		select {
		case t <- string(p):
		case <-done:
		}
		return len(p), nil
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// What is shown of one part of a statement, in characters: none takes the screen from
// the others.
const (
	mostPart   = 64
	mostReason = 400
)

// words are the lines of a question: what is signed, as the other machine names it.
func words(host string, st judge.Statement) []string {
	lines := []string{
		"swarmdeck attach: " + term.Clean(host) + " wants your signature", "",
		"  This question is this machine's. What the other one showed may differ:",
		"  compare the approval and its digest before you sign.", "",
	}
	add := func(name, value string) {
		most := mostPart
		if name == "reason" {
			most = mostReason
		}
		if all := []rune(term.Reveal(value)); len(all) > most {
			value = fmt.Sprintf("%s… and %d characters more", string(all[:most]), len(all)-most)
		} else {
			value = string(all)
		}
		if value != "" {
			lines = append(lines, fmt.Sprintf("  %-9s %s", name, value))
		}
	}
	add("approval", st.Approval)
	add("digest", st.Digest)
	add("reason", st.Reason)
	add("content", st.Content)
	if st.Always != nil {
		add("always", string(core.MustEncode(st.Always)))
	}
	add("operator", st.Operator)
	add("tenant", st.TenantID)
	add("log", st.Log)
	add("time", st.At.UTC().Format(time.RFC3339))
	add("answer", strings.ToUpper(st.Answer)) // right above the question, whatever the others are
	return append(lines, "", fmt.Sprintf("y signs it, n or esc does not, nor do %.0f minutes; ctrl+c leaves: ", keyring.Confirming.Minutes()))
}
