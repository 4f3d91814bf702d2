package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/hold"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/host"
)

// Bounds of what a host says before the link is one.
const (
	maxLine  = 4 << 10
	maxLines = 200
	maxSaid  = 2 << 10 // bytes of the command's complaints
)

// conn is a command whose standard streams are the connection.
type conn struct {
	p    *cell.Process
	once sync.Once

	last pipe.Kept // the end of its standard error
	read chan struct{}
}

func (c *conn) Read(b []byte) (int, error)  { return c.p.Stdout.Read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.p.Stdin.Write(b) }

// Close ends the command.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.p.Stdin.Close()
		_ = c.p.Stop(cell.Grace{Interrupt: -1, Terminate: -1})
		<-c.read
		c.p.CloseIO()
	})
	return nil
}

// complain keeps the end of what it says on its standard error.
func (c *conn) complain() {
	defer close(c.read)
	_, _ = io.Copy(&c.last, c.p.Stderr)
}

// said is its last complaint, "" for none.
func (c *conn) said() string {
	lines := strings.FieldsFunc(string(c.last.Bytes()), func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if s := strings.TrimSpace(desk.Text(line, maxReason)); s != "" {
			return s
		}
	}
	return ""
}

// dial reaches a host, with the program there and its keeper at the other end.
func (l *link) dial(ctx context.Context) (*conn, error) {
	mine, err := l.pool.digest()
	if err != nil {
		return nil, err
	}
	if l.state().State != host.Away {
		l.set(host.Connecting, l.state().Reason)
	}
	mark := hold.Mark(l.id)
	words := argv(l.h, script(mark, l.id, mine.digest, mine.size))
	p, err := l.pool.opt.Cells.Start(cell.Spec{
		Run: "host:" + l.id, Argv: words, Dir: "/", Env: environment(), Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Open},
	})
	if err != nil {
		return nil, fmt.Errorf("reach the host: %w", err)
	}
	c := &conn{p: p, last: pipe.Kept{Most: maxSaid, End: true}, read: make(chan struct{})}
	go c.complain()
	alarm := time.AfterFunc(stepTime, func() { go c.Close() })
	defer context.AfterFunc(ctx, func() { c.Close() })()
	err = l.prepare(c, mark, mine, alarm)
	if !alarm.Stop() && err == nil {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		silent := errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed)
		if silent { // for its last words to be read
			_ = p.Stop(cell.Grace{Interrupt: time.Second, Terminate: -1})
		}
		c.Close()
		if said := c.said(); silent && said != "" {
			err = errors.New(said)
		} else if silent {
			err = fmt.Errorf("%s %s before there was a link", words[0], p.Exit().Describe())
		}
		return nil, err
	}
	return c, nil
}

// prepare talks to the script until the keeper is at the other end.
func (l *link) prepare(c *conn, mark string, mine program, alarm *time.Timer) error {
	for range maxLines {
		line, err := readLine(c)
		if err != nil {
			return err
		}
		words, ours := strings.CutPrefix(line, mark+" ")
		if !ours {
			continue // what a host says to everybody
		}
		word, rest, _ := strings.Cut(words, " ")
		switch word {
		case "on":
			system, err := systemOf(rest)
			if err != nil {
				return err
			}
			l.mu.Lock()
			l.st.System = system
			l.mu.Unlock()
		case "want":
			alarm.Reset(copyTime)
			if l.state().State != host.Away {
				l.set(host.Copying, "")
			}
			if err := send(c, mine); err != nil {
				return err
			}
			alarm.Reset(stepTime)
		case "have":
		case "link":
			return nil
		case "error":
			return core.Errorf(core.Unavailable, "%s", desk.Text(rest, maxReason))
		}
	}
	return core.Errorf(core.Unavailable, "the host says too much and nothing of a link: is it a shell that runs what it is given?")
}

// readLine reads one byte at a time: what follows the last line is not for it.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for len(line) < maxLine {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return strings.TrimRight(string(line), "\r"), nil
}

func send(w io.Writer, mine program) error {
	f, err := os.Open(mine.path)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(w, io.LimitReader(f, mine.size))
	return err
}

// systemOf reads what uname says of a host on which this program runs.
func systemOf(uname string) (string, error) {
	system, machine, _ := strings.Cut(strings.TrimSpace(uname), " ")
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]
	if system != "Linux" || arch != runtime.GOARCH {
		return "", core.Errorf(core.Unavailable, "the host is %s; this program runs on linux/%s", desk.Text(uname, 100), runtime.GOARCH)
	}
	return "linux/" + arch, nil
}

// argv is the command that has a shell on a host run a script.
func argv(h host.Host, script string) []string {
	if len(h.Command) == 0 {
		a, _ := host.ParseAddress(h.Address) // it was checked when it was kept
		args := []string{
			"ssh", "-T", "-a", "-x",
			// No question, nobody's port or agent, and no end of this link that would be
			// the end of somebody else's.
			"-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no",
			"-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
		}
		if a.Port != "" {
			args = append(args, "-p", a.Port)
		}
		if a.User != "" {
			args = append(args, "-l", a.User)
		}
		return append(args, "--", a.Host, "exec sh -c "+quoted(script))
	}
	whole := "sh -c " + quoted(script)
	var words []string
	put := false
	for _, w := range h.Command {
		if w == host.Here {
			w, put = whole, true
		}
		words = append(words, w)
	}
	if put {
		return words
	}
	return append(words, "sh", "-c", script)
}

// quoted is a text as one word of any shell: it has neither ' nor \ nor !.
func quoted(s string) string { return "'" + s + "'" }

// environment is what ssh needs of the engine's, an agent with keys, if there is one; and
// what says where docker, podman and kubectl have theirs.
func environment() map[string]string {
	env := map[string]string{}
	for _, name := range []string{
		"SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION",
	} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

// script puts the program on a host, checked by its digest, and has it link. It
// is run by whatever sh is there, behind whatever shell the user has: so it has
// neither quotes nor line breaks nor backslashes nor exclamation marks. What it
// says begins with the mark. The program comes on its standard input if it is
// not there; nothing follows before that is said to be well.
func script(mark, id, digest string, size int64) string {
	return strings.NewReplacer("MARK", mark, "DIGEST", digest, "SIZE", fmt.Sprint(size), "KEEPER", "keeper-"+id, "ID", id).Replace(strings.Join([]string{
		`umask 077`,
		`echo MARK on $(uname -sm)`,
		`d=${HOME:-/tmp}/.cache/swarmdeck`,
		`b=$d/DIGEST/swarmdeck`,
		`mkdir -p "$d/DIGEST" "$d/KEEPER" || { echo MARK error no place for it in $d; exit 1; }`,
		`sum() { sha256sum < "$1" 2>/dev/null | head -c 64; }`,
		`if [ -f "$b" ] && [ "$(sum "$b")" = DIGEST ]; then :; else ` +
			`echo MARK want; n=$b.$$; head -c SIZE > "$n"; ` +
			`if [ "$(sum "$n")" = DIGEST ]; then chmod 755 "$n" && mv -f "$n" "$b"; else rm -f "$n"; echo MARK error the program came in another shape, or there is no sha256sum; exit 1; fi; fi`,
		`echo MARK have`,
		`cd "$d/KEEPER" || exit 1`,
		`"$b" -keeper hold ID DIGEST < /dev/null > /dev/null 2> log & exec "$b" -keeper link ID`,
	}, "; "))
}
