// Package attach opens the cockpit of another machine by the system's ssh.
package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
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
	args := append([]string{"-t", "-o", "SendEnv=LANG LC_* COLORTERM NO_COLOR", "-o", "ServerAliveInterval=15"}, a.Options...)
	if a.Port != "" {
		args = append(args, "-p", a.Port, "--", a.Host)
	} else {
		args = append(args, "--", a.Host, command.Quote(a.Program))
	}
	pause, cuts := firstTry, 0
	for began := false; ; {
		start := time.Now()
		cmd := exec.CommandContext(ctx, ssh, args...)
		shown := &serve.Passing{To: os.Stdout}
		said := &last{to: os.Stderr}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, shown, said
		cmd.WaitDelay = time.Second // a master connection stays behind and may hold the output
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		if err != nil {
			shown.GiveBack() // ssh restores the line, not the screen
		}
		var exit *exec.ExitError
		if began = began || shown.Any; !began && said.cut() {
			cuts++
		}
		switch {
		case err == nil:
			return nil
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
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, lastTry)
	}
}

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
