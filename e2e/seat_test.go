package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"swarmdeck/expect"
)

// seat is the program in a real terminal: what it writes is drawn by an
// emulator, keys are sent as the bytes a terminal sends.
type seat struct {
	t    testing.TB
	cmd  *exec.Cmd
	tty  *os.File
	done chan struct{} // its output has ended

	mu    sync.Mutex
	vt    vt10x.Terminal
	raw   bytes.Buffer
	esc   []byte    // a sequence that is not complete yet
	ch    []byte    // the last character, for "repeat it"
	drawn time.Time // or a key pressed, the last time
}

func (u *user) sit(w, h int, args ...string) *seat {
	u.t.Helper()
	return u.sitAt(w, h, u.command(args...))
}

// sitAt is a terminal with another program in it.
func (u *user) sitAt(w, h int, cmd *exec.Cmd) *seat {
	u.t.Helper()
	cmd.Dir, cmd.Env = u.home, u.env
	s := &seat{t: u.t, cmd: cmd, done: make(chan struct{}), vt: vt10x.New(vt10x.WithSize(w, h))}
	tty := expect.Of(pty.StartWithSize(s.cmd, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}))(u.t)
	s.tty = tty
	go func() {
		defer close(s.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := tty.Read(buf)
			s.draw(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	u.t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // what it began has the terminal too
		_ = s.cmd.Wait()
		tty.Close()
		<-s.done
	})
	return s
}

var (
	csi       = regexp.MustCompile(`^\x1b\[([<=>?]?)([0-9;:]*)[ -/]*([@-~])`)
	openCSI   = regexp.MustCompile(`^\x1b(\[[ -?]*)?$`)
	controls  = regexp.MustCompile(`\x1b\[[ -?]*[ -/]*[@-~]|\x1b[\]P_^][^\x07\x1b]*(\x07|\x1b\\)|\x1b[ -/]*[0-~]`)
	colourSGR = regexp.MustCompile(`\x1b\[([0-9]*;)*(3[0-8]|4[0-8]|9[0-7]|10[0-7])(;[0-9:]+)*m`)
)

// draw hands output to the emulator, which does not know "repeat the last
// character" and takes private sequences for others that look alike.
func (s *seat) draw(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = time.Now()
	s.raw.Write(p)
	if n := bytes.Count(p, []byte("\x1b[5n")); n > 0 { // as every terminal does
		_, _ = s.tty.WriteString(strings.Repeat("\x1b[0n", n))
	}
	s.esc = append(s.esc, p...)
	for len(s.esc) > 0 {
		b := s.esc
		switch m := csi.FindSubmatch(b); {
		case m != nil:
			s.esc = b[len(m[0]):]
			n, _ := strconv.Atoi(string(m[2]))
			switch {
			case m[3][0] == 'b' && len(m[1]) == 0:
				s.vt.Write(bytes.Repeat(s.ch, max(1, n)))
			case len(m[1]) > 0 && m[1][0] != '?', m[3][0] == 'u', m[3][0] == 'p':
			default:
				s.vt.Write(m[0])
			}
		case openCSI.Match(b):
			return
		case b[0] == 0x1b:
			s.vt.Write(b[:1])
			s.esc = b[1:]
		case !utf8.FullRune(b):
			return
		default:
			_, n := utf8.DecodeRune(b)
			if b[0] >= ' ' {
				s.ch = append(s.ch[:0], b[:n]...)
			}
			s.vt.Write(b[:n])
			s.esc = b[n:]
		}
	}
}

func (s *seat) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := strings.Split(s.vt.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.Join(rows, "\n")
}

func (s *seat) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// see waits until the screen matches.
func (s *seat) see(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	s.until("/"+pattern+"/", func() bool { return re.MatchString(s.screen()) })
}

// gone waits until the screen does not match any more.
func (s *seat) gone(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	s.until("no /"+pattern+"/", func() bool { return !re.MatchString(s.screen()) })
}

// rests waits until nothing was drawn and no key pressed for a time, as one who reads.
func (s *seat) rests(d time.Duration) {
	s.t.Helper()
	s.until("a screen at rest", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Since(s.drawn) >= d
	})
}

func (s *seat) until(what string, ok func() bool) {
	s.t.Helper()
	expect.Await(s.t, what, ok)
}

// press sends what a terminal sends for keys or typed text.
func (s *seat) press(text string) {
	s.t.Helper()
	s.mu.Lock()
	s.drawn = time.Now()
	s.mu.Unlock()
	expect.Of(io.WriteString(s.tty, text))(s.t)
}

func (s *seat) resize(w, h int) {
	s.t.Helper()
	s.mu.Lock()
	s.vt.Resize(w, h)
	s.mu.Unlock()
	expect.No(s.t, pty.Setsize(s.tty, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}))
}

// leaves quits the cockpit: ctrl+c, and once more when work still runs. It
// returns the exit code.
func (s *seat) leaves() int {
	s.t.Helper()
	s.press(ctrlC)
	left := func() bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	}
	re := regexp.MustCompile(`again to quit`)
	s.until("the end", func() bool { return left() || re.MatchString(s.screen()) })
	if !left() {
		s.press(ctrlC)
	}
	return s.ends()
}

// ends waits for the program to end by itself and returns its exit code.
func (s *seat) ends() int {
	s.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	err := s.cmd.Wait()
	expect.Must(s.t, err == nil || errors.As(err, new(*exec.ExitError)), "%v", err)
	<-s.done
	return s.cmd.ProcessState.ExitCode()
}

const (
	enter    = "\r"
	esc      = "\x1b"
	down     = "\x1b[B"
	pageDown = "\x1b[6~"
	home     = "\x1b[H"
	ctrlC    = "\x03"
	ctrlK    = "\x0b"
	ctrlX    = "\x18"
)
