package script

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"

	"swarmdeck/engine/core"
	"swarmdeck/ui"
	"swarmdeck/ui/command"
	"swarmdeck/ui/term"
)

// Pauses of --show, so that a person can follow. They change nothing but the
// time a script takes.
const (
	pressPause = 120 * time.Millisecond
	linePause  = 400 * time.Millisecond
	framePause = 50 * time.Millisecond
)

// show draws a script's cockpit on the terminal while it runs. A nil show
// draws nothing.
type show struct {
	out  io.Writer // makes of the colours what the terminal at hand has
	last string
	at   time.Time
}

func newShow(env *command.Env, color string) (*show, error) {
	if env.Getenv("TERM") == "" || env.Getenv("TERM") == "dumb" {
		return nil, core.Errorf(core.InvalidInput, "--show: needs a terminal, TERM is %q", env.Getenv("TERM")).With("field", "show")
	}
	caps := term.Detect(env.Getenv, true, true, term.Flags{Color: color})
	return &show{out: &colorprofile.Writer{Forward: env.Stdout, Profile: caps.Color}}, nil
}

// frame draws what the model shows when it is new, then waits.
func (s *show) frame(m *ui.Model, pause time.Duration) {
	if s == nil {
		return
	}
	content := m.View().Content
	if pause == 0 && (content == s.last || time.Since(s.at) < framePause) {
		return
	}
	if content != s.last {
		s.last, s.at = content, time.Now()
		fmt.Fprintf(s.out, "\x1b[H\x1b[2J%s", strings.ReplaceAll(content, "\n", "\r\n"))
	}
	time.Sleep(pause)
}

// line says which command the script runs, below the picture.
func (s *show) line(args []string) {
	if s == nil {
		return
	}
	fmt.Fprintf(s.out, "\r\n\x1b[2K> %s", term.Clean(core.Join(args)))
	s.last = ""
	time.Sleep(linePause)
}

// end leaves the picture and goes below it.
func (s *show) end() {
	if s != nil {
		fmt.Fprint(s.out, "\x1b[m\r\n")
	}
}
