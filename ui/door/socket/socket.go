// Package socket is the door between the processes of one user: the process that
// has a data file listens on a private socket, and the others have it carry out
// their command lines.
package socket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/serve"
)

// Instance names the engine of a data file, the same at each start.
func Instance(data string) string {
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	sum := sha256.Sum256([]byte(data))
	return "swarmdeck-" + hex.EncodeToString(sum[:6])
}

// Dial finds the process that has a data file, when it listens.
func Dial(ctx context.Context, data string) (net.Conn, error) {
	if _, err := os.Stat(data); err != nil {
		return nil, err
	}
	path := serve.SocketPath(os.Getenv, Instance(data))
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("no engine listens: %w", err)
	}
	return serve.Dial(ctx, path)
}

// Proof is what this user's own doors know of who comes in: the socket takes
// processes of this user alone.
func Proof() string { return operator.UserProof(os.Getuid()) }

// surroundings are the variables of the environment that mean something to a
// command or a cockpit.
func surroundings() []string {
	env := []string{seatVariable + "=" + Seat()}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "TRACEPARENT", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LANG", "LC_ALL", "LC_CTYPE", "ACCESSIBLE",
			"RUNEWIDTH_EASTASIAN", "TERM", "TERM_PROGRAM", "SSH_TTY", "SSH_CONNECTION", "SSH_AUTH_SOCK", "HOME", "USER", "PATH",
			"PAGER", "VISUAL", "EDITOR":
			env = append(env, kv)
		default:
			switch {
			case strings.HasPrefix(name, "SWARMDECK_"), strings.HasPrefix(name, "XDG_"):
				env = append(env, kv)
			case strings.HasSuffix(name, "_API_KEY"), strings.HasSuffix(name, "_TOKEN"): // that it is there, and not what it is
				env = append(env, name+"=set")
			}
		}
	}
	return env
}

// Talk has the process that has a data file carry out a command line that is told
// more as it goes.
func Talk(ctx context.Context, conn net.Conn, login *serve.Login, dir string, args []string, in io.Reader, out, errs io.Writer) (int, error) {
	return serve.Attach(ctx, conn, attachment(login, dir, args, in, out, errs))
}

// Ask has the process that has a data file carry out a command that only reads,
// and gives what it printed.
func Ask(ctx context.Context, conn net.Conn, args []string) ([]byte, error) {
	var out, said bytes.Buffer
	none, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer none.Close()
	code, err := serve.Attach(ctx, conn, serve.Attachment{Line: core.Join(args), Env: surroundings(), Stdin: none, Stdout: &out, Stderr: &said})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit %d: %s", code, said.String())
	}
	return out.Bytes(), err
}
