// Package attach opens the cockpit of another machine by the system's ssh.
package attach

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keyring"
	"swarmdeck/ui/serve"
)

// sshLost is what ssh exits with when the connection failed, whatever the
// program at its other end said.
const sshLost = 255

// How often a connection that was lost is tried again.
const (
	firstTry = 500 * time.Millisecond
	lastTry  = 15 * time.Second
	settled  = 10 * time.Second // a connection that held this long begins anew
	mostCuts = 5                // of connections in a row from which nothing was shown
)

// To opens the cockpit of another machine until it is left. A connection that
// never came about, from which nothing was ever shown, is not tried again: its
// reason is on the screen. One that was cut, while a question was asked perhaps, is.
func To(ctx context.Context, env *command.Env, a command.Attach) error {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return core.Errorf(core.Unavailable, "attach: ssh is missing: %v", err)
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	d := &desk{in: os.Stdin, out: serve.Passing{To: os.Stdout}}
	args := append([]string{"-t", "-a", "-o", "SendEnv=LANG LC_* COLORTERM NO_COLOR", "-o", "ServerAliveInterval=15", "-o", "ExitOnForwardFailure=no"}, a.Options...)
	here := ""                               // where requests for a signature come
	if term.IsTerminal(int(os.Stdin.Fd())) { // somebody sits here, and can sign
		d.own = true
		go d.read()
		s := &signer{desk: d, host: a.Host, key: a.Key, leave: func() { leave(errLeft) }}
		var end func()
		if here, end, err = s.listen(ctx); err != nil {
			return fmt.Errorf("attach: %w", err)
		}
		defer end()
	}
	pause, cuts := firstTry, 0
	for began := false; ; {
		start := time.Now()
		cmd := exec.CommandContext(ctx, ssh, append(slices.Clip(args), reach(&a, here)...)...)
		said := &last{to: os.Stderr}
		cmd.Stderr = said
		cmd.WaitDelay = time.Second // a master connection stays behind and may hold the output
		shown, err := d.run(cmd)
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		var exit *exec.ExitError
		if began = began || shown; !began && said.cut() {
			cuts++
		}
		switch {
		case err == nil:
			return nil
		case context.Cause(ctx) == errLeft:
			return &command.ExitError{Code: command.ExitInterrupted}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &exit):
			return fmt.Errorf("attach to %s: %w", a.Host, err)
		case exit.ExitCode() != sshLost, !began && (!said.cut() || cuts == mostCuts):
			return &command.ExitError{Code: max(exit.ExitCode(), 1)}
		}
		if time.Since(start) > settled {
			pause = firstTry
		}
		fmt.Fprintf(env.Stderr, "swarmdeck: the connection to %s is lost; the work there goes on; next try in %s (ctrl+c ends)\r\n", a.Host, pause)
		if core.Within(ctx.Done(), pause) {
			return context.Cause(ctx)
		}
		pause = min(2*pause, lastTry)
	}
}

// reach are the arguments of ssh that say where, and what is run there. Requests for
// a signature come from a socket there, which is another for each connection: an sshd
// leaves that of one that was lost behind.
func reach(a *command.Attach, here string) (args []string) {
	program := core.Quote(a.Program)
	if here != "" {
		at := "/tmp/" + keyring.SignerPrefix + strings.ToLower(rand.Text())
		args = append(args, "-R", at+":"+here)
		program = "env " + keyring.SignerVariable + "=" + at + " " + program
	}
	if a.Port != "" {
		return append(args, "-p", a.Port, "--", a.Host)
	}
	return append(args, "--", a.Host, program)
}

// errLeft says that who sits here left at a question.
var errLeft = errors.New("left")

// last passes on what ssh says, and remembers its end.
type last struct {
	to   io.Writer
	kept []byte
}

func (l *last) Write(p []byte) (int, error) {
	const most = 512
	l.kept = append(l.kept, p...)
	l.kept = l.kept[max(0, len(l.kept)-most):]
	return l.to.Write(p)
}

// cut says that there was a connection, which the other end closed.
func (l *last) cut() bool {
	for _, words := range []string{"Connection closed by", "Connection reset by", "closed by remote host", "Broken pipe", "not responding"} {
		if bytes.Contains(l.kept, []byte(words)) {
			return true
		}
	}
	return false
}
