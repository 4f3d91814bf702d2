package script

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"swarmdeck/engine/core"
	"swarmdeck/ui"
	"swarmdeck/ui/command"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// stage is the cockpit on its virtual screen.
type stage struct {
	*ui.Headless
	show *show
}

func (s *stage) frame() *screen.Canvas { return s.Model().Frame() }

// rows is the screen's text.
func (s *stage) rows() []string { return s.frame().Plain() }

func (s *stage) text() string { return strings.Join(s.rows(), "\n") }

// status is the header and the footer.
func (s *stage) status() string {
	rows := s.rows()
	if len(rows) == 0 {
		return ""
	}
	return rows[0] + "\n" + rows[len(rows)-1]
}

// press sends one message, after those that are on their way, and shows what
// came of it.
func (s *stage) press(msg tea.Msg) {
	s.Pump()
	s.Send(msg)
	s.show.frame(s.Model(), pressPause)
}

// openCockpit starts the cockpit in the way the command does: flags such as
// --tenant, --ascii and --read-only mean the same.
func (r *run) openCockpit(ts teller, args []string) {
	w, h := 80, 24
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		var err error
		w, h, err = r.size(args[0])
		ts.Check(err)
		args = args[1:]
	}
	if r.stage != nil {
		r.stage.Close()
		r.stage = nil
	}
	env := r.env(ts)
	env.Stdout, env.Stderr = &bounded{r, ts.Stdout()}, &bounded{r, ts.Stderr()}
	// What the cockpit runs later must not read the script's own variables.
	env.Getenv = frozen(env.Getenv)
	env.Doors.Cockpit = func(ctx context.Context, env *command.Env, s command.Start) error {
		s.ASCII = term.Detect(env.Getenv, true, true, term.Flags{ASCII: s.ASCII}).ASCII
		opt, err := r.cockpit(env, s)
		if err != nil {
			return err
		}
		opt.Context = ctx
		if opt.Remote = env.Remote; opt.Remote {
			opt.Attached, opt.Lend = true, nil
		}
		r.stage = &stage{Headless: ui.NewHeadless(opt, w, h), show: r.show}
		return nil
	}
	r.code = command.Run(r.ctx, env, args)
	if r.code != command.ExitOK {
		ts.Fatalf("expected: the cockpit opens\nactual: exit code %d", r.code)
	}
	r.show.frame(r.stage.Model(), pressPause)
}

// frozen is the part of an environment that a cockpit reads, as it is now.
func frozen(getenv func(string) string) func(string) string {
	now := map[string]string{}
	for _, name := range passed {
		now[name] = getenv(name)
	}
	return func(name string) string { return now[name] }
}

// size reads 80x24.
func size(text string) (w, h int, err error) {
	a, b, ok := strings.Cut(text, "x")
	w, errW := strconv.Atoi(a)
	h, errH := strconv.Atoi(b)
	if !ok || errW != nil || errH != nil || w < 1 || h < 1 || w > 4096 || h > 4096 {
		return 0, 0, core.Invalid("size", text, "WIDTHxHEIGHT in cells, such as 80x24")
	}
	return w, h, nil
}

// on is the cockpit, which must have been opened, as it is now.
func (r *run) on(ts teller) *stage {
	if r.stage == nil {
		ts.Fatalf("there is no cockpit; open one with: cockpit 80x24")
	}
	r.stage.Pump()
	return r.stage
}

// live is the cockpit, which must not have been left.
func (r *run) live(ts teller) *stage {
	s := r.on(ts)
	if s.Quit() {
		ts.Fatalf("the cockpit has been left; open it again with: cockpit 80x24")
	}
	return s
}

func (r *run) key(ts teller, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: key K…, such as: key j j enter ctrl+e")
	}
	s := r.live(ts)
	for _, name := range args {
		k, err := ui.Key(name)
		ts.Check(err)
		s.press(k)
	}
}

func (r *run) typeText(ts teller, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: type 'text'")
	}
	s := r.live(ts)
	for _, ch := range strings.Join(args, " ") {
		k := tea.KeyPressMsg{Code: ch, Text: string(ch)}
		s.press(k)
	}
}

func (r *run) paste(ts teller, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: paste 'text'")
	}
	r.live(ts).press(tea.PasteMsg{Content: strings.Join(args, " ")})
}

func (r *run) resize(ts teller, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: resize 120x40")
	}
	w, h, err := r.size(args[0])
	ts.Check(err)
	r.live(ts).press(tea.WindowSizeMsg{Width: w, Height: h})
}

// screen checks what the screen has, or has not, right now.
func (r *run) screen(ts teller, neg bool, args []string) {
	re := pattern(ts, "screen", args)
	s := r.on(ts)
	switch found := re.MatchString(s.text()); {
	case neg && found:
		ts.Fatalf("screen\nexpected: no match for /%s/\nactual: it matches %q", source(re), re.FindString(s.text()))
	case !neg && !found:
		ts.Fatalf("screen\nexpected: a match for /%s/\nactual: the screen below", source(re))
	}
}

// pattern reads /re/ or re; a pattern with blanks need not be quoted.
func pattern(ts teller, what string, args []string) *regexp.Regexp {
	text := strings.Join(args, " ")
	if n := len(text); n >= 2 && text[0] == '/' && text[n-1] == '/' {
		text = text[1 : n-1]
	}
	if text == "" {
		ts.Fatalf("usage: %s /regular expression/", what)
	}
	re, err := regexp.Compile("(?m)" + text)
	ts.Check(err)
	return re
}

// source is a pattern as the script has it.
func source(re *regexp.Regexp) string { return strings.TrimPrefix(re.String(), "(?m)") }

// cell checks one cell: its role, or its character.
func (r *run) cell(ts teller, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: cell ROW,COL role=NAME")
	}
	y, x, ok := rowCol(args[0])
	if !ok {
		ts.Fatalf("cell: %q is not allowed; allowed: ROW,COL from 1,1", args[0])
	}
	text, role, ok := r.on(ts).frame().At(x-1, y-1)
	if !ok {
		ts.Fatalf("cell %s is not on the screen", args[0])
	}
	for _, want := range args[1:] {
		name, value, _ := strings.Cut(want, "=")
		got := text
		switch name {
		case "role":
			if _, known := screen.ParseRole(value); !known {
				ts.Fatalf("cell: there is no role %q; allowed: %s", value, strings.Join(screen.RoleNames(), ", "))
			}
			got = role.String()
		case "text":
		default:
			ts.Fatalf("cell: %q is not allowed; allowed: role=NAME, text=CHARACTER", want)
		}
		if (got == value) == neg {
			ts.Fatalf("cell %s\nexpected: %s%s\nactual: %s=%s", args[0], map[bool]string{true: "not "}[neg], want, name, got)
		}
	}
}

// limit is how long await waits unless told otherwise.
const limit = 10 * time.Second

// until waits for ready, which is asked again whenever the screen has changed.
// It reports whether ready came true in time; an error of ready ends the wait.
func (r *run) until(ts teller, within time.Duration, ready func() (bool, error)) bool {
	ctx, cancel := context.WithTimeout(r.ctx, within)
	defer cancel()
	return r.wait(ctx, ts, nil, ready)
}

// untilEngine is until for what only the engine knows: its bell says when to
// ask again. The cockpit lives on meanwhile.
func (r *run) untilEngine(ts teller, within time.Duration, ready func() (bool, error)) bool {
	ctx, cancel := context.WithTimeout(r.ctx, within)
	defer cancel()
	if r.eng == nil {
		_, err := r.open(r.ctx, r.start.Tenant)
		ts.Check(err)
	}
	return r.wait(ctx, ts, r.eng.Watch(ctx), ready)
}

func (r *run) wait(ctx context.Context, ts teller, bell <-chan struct{}, ready func() (bool, error)) bool {
	done, err := ready()
	ask := func() bool {
		if !done && err == nil {
			done, err = ready()
		}
		return done || err != nil
	}
	if r.stage != nil && !r.stage.Quit() {
		// What was waited for is what a person should see.
		defer func() { r.show.frame(r.stage.Model(), pressPause) }()
		//nolint:errcheck // that time is up shows in done
		r.stage.Await(ctx, func(m *ui.Model) bool {
			r.show.frame(m, 0)
			news := bell == nil || core.IsOver(bell) // without a bell there always may be
			return news && ask() || done || err != nil || r.stage.Quit()
		})
	}
	for !done && err == nil && ctx.Err() == nil && bell != nil {
		select {
		case <-ctx.Done():
		case <-bell:
			ask()
		}
	}
	if r.ctx.Err() != nil {
		ts.Fatalf("interrupted")
	}
	ts.Check(err)
	return done || bell == nil && ask()
}

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
