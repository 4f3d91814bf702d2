package cell

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

// screenful collects what a run writes to its terminal.
type screenful struct {
	mu   sync.Mutex
	said bytes.Buffer
	over chan struct{}
}

func onScreen(p *Process) *screenful {
	s := &screenful{over: make(chan struct{})}
	go func() {
		defer close(s.over)
		for buf := make([]byte, 4096); ; {
			n, err := p.Stdout.Read(buf)
			s.mu.Lock()
			s.said.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screenful) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func (s *screenful) until(t *testing.T, text string) {
	t.Helper()
	expect.Await(t, "the terminal says "+text, func() bool { return strings.Contains(s.String(), text) })
}

// terminalRun starts a script in a terminal, which ends with the test.
func terminalRun(t *testing.T, s *Supervisor, script string) (*Process, *screenful) {
	t.Helper()
	p := start(t, s, Spec{Run: "tty", Argv: sh(script), Wall: Wall{Profile: Worker}, Limits: DefaultLimits(), Terminal: &terminal.Size{Cols: 91, Rows: 33}})
	return p, onScreen(p)
}

func typed(t *testing.T, p *Process, text string) {
	t.Helper()
	expect.Of(p.Stdin.WriteString(text))(t)
}

func TestARunHasATerminalOfItsOwnWithItsSize(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		p, said := terminalRun(t, s, `trap 'echo now $(stty size)' WINCH; test -t 0 && test -t 1 && test -t 2 && echo all three
: >/dev/tty && echo controlling; echo was $(stty size); while read line; do echo "got <$line>"; done; exit 7`)
		for _, want := range []string{"all three\r\n", "controlling\r\n", "was 33 91\r\n"} {
			said.until(t, want)
		}
		typed(t, p, "hello\r")
		said.until(t, "got <hello>\r\n")
		expect.No(t, p.Resize(terminal.Size{Cols: 132, Rows: 50}))
		typed(t, p, "\r") // a shell traps once its read is over
		said.until(t, "now 50 132\r\n")
		typed(t, p, "\x04")
		<-said.over
		e := p.Exit()
		expect.True(t, e.Code == 7, "exit: %+v", e)
	})
}

func TestProgramsFindTheNameOfTheirTerminal(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		_, said := terminalRun(t, s, `test "$(stat -Lc %t:%T "$(tty)")" = "$(stat -Lc %t:%T /proc/self/fd/0)" && echo "it is $(tty)"; stty size <"$(tty)"`)
		<-said.over
		opens := strings.HasPrefix(said.String(), "it is /dev/console\r\n33 91\r\n")
		expect.True(t, opens || strings.HasPrefix(said.String(), "it is /dev/pts/"), "%s", said) // the machine's opens to no run without name spaces
	})
}

func TestAnInterruptKeyReachesWhatIsInTheForegroundAlone(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		// It says so again and again: such a key also drops what is not yet read.
		p, said := terminalRun(t, s, `trap : INT; echo up; sleep 1000; while :; do echo "went on"; sleep 1; done`)
		said.until(t, "up")
		expect.Await(t, "the sleep is interrupted", func() bool {
			typed(t, p, "\x03") // the first may come before it sleeps
			return strings.Contains(said.String(), "went on")
		})
	})
}

func TestAPasswordIsKnownByItsTerminal(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		p, said := terminalRun(t, s, `echo shown; read x; stty -echo; echo hidden; read x; stty raw -echo; echo raw; read x`)
		said.until(t, "shown")
		expect.True(t, !p.Unseen(), "a terminal that echoes is taken for one that does not")
		typed(t, p, "a\r")
		said.until(t, "hidden")
		expect.True(t, p.Unseen(), "a terminal that does not echo is taken for one that does")
		typed(t, p, "b\r")
		said.until(t, "raw")
		expect.True(t, !p.Unseen(), "a program that draws what is typed is taken for one that hides it")
	})
}

func TestAStoppedRunLeavesNothingInItsTerminal(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		p, said := terminalRun(t, s, `trap '' HUP INT TERM; (setsid sleep 1000 &); sleep 1000 & echo up; wait`)
		said.until(t, "up")
		expect.No(t, p.Pause(t.Context()))
		expect.No(t, p.Resume(t.Context()))
		expect.No(t, p.Stop(Grace{Interrupt: -1, Terminate: -1}))
		<-said.over // its end of the terminal is closed: nobody holds it
	})
}

func TestATerminalHasBoundedSize(t *testing.T) {
	s := newSupervisor(t)
	for _, of := range [][2]int{{}, {19, 24}, {80, 4}, {501, 24}, {80, 201}, {-1, -1}} {
		size := terminal.Size{Cols: of[0], Rows: of[1]}
		_, err := s.Start(Spec{Run: "size", Argv: []string{"true"}, Dir: "/usr", Terminal: &size})
		e := core.AsError(err)
		expect.True(t, e.Code == core.Invalid("", "", "").Code, "%v: %v", size, err)
	}
}

func TestAnInitKeepsWhatATerminalShowedLast(t *testing.T) {
	t.Setenv("CELL_TEST_TTY", "1")
	for name, env := range ways {
		t.Run(name, func(t *testing.T) {
			d := doomed(t, `echo correct horse battery; echo x >up; exec sleep 300`, env...)
			d.kill()
			if k := d.next(); bytes.Contains(k.Stdout, []byte("horse")) || !bytes.HasSuffix(k.Stdout, []byte("\r\n")) || k.How != EndedByReturn {
				t.Errorf("kept %+v, %q", k, k.Stdout)
			}
		})
	}
}
