package ui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// Headless runs the real root model without a terminal, for scripts and
// tests: the caller's goroutine does every Update, Cmds run in goroutines of
// their own, as under the toolkit.
type Headless struct {
	model  *Model
	cancel context.CancelFunc
	msgs   chan tea.Msg
	done   <-chan struct{}
	cmds   sync.WaitGroup
	quit   bool
}

// NewHeadless starts a cockpit of w by h cells.
func NewHeadless(opt Options, w, h int) *Headless {
	if opt.Context == nil {
		opt.Context = context.Background()
	}
	d := &Headless{msgs: make(chan tea.Msg)}
	opt.Context, d.cancel = context.WithCancel(opt.Context)
	d.done = opt.Context.Done()
	d.model = New(opt)
	d.run(d.model.Init())
	d.Send(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

// Model is the model that is driven. Use it between calls only.
func (d *Headless) Model() *Model { return d.model }

// Quit reports whether the cockpit has been left.
func (d *Headless) Quit() bool { return d.quit }

// Close ends the cockpit and waits for its Cmds: nothing of it touches the
// engine any more.
func (d *Headless) Close() {
	d.cancel()
	d.cmds.Wait()
	d.model.depart()
}

// after makes timers that end with ctx.
func after(ctx context.Context) func(time.Duration, tea.Msg) tea.Cmd {
	return func(d time.Duration, msg tea.Msg) tea.Cmd {
		return func() tea.Msg {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				return msg
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// Send gives the model one message: a key press, a paste, a size.
func (d *Headless) Send(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
		return
	case tea.QuitMsg:
		d.quit = true
		return
	case tea.BatchMsg:
		for _, cmd := range msg {
			d.run(cmd)
		}
		return
	}
	_, cmd := d.model.Update(msg)
	d.run(cmd)
}

func (d *Headless) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	d.cmds.Go(func() {
		msg := cmd()
		select {
		case d.msgs <- msg:
		case <-d.done:
		}
	})
}

// Pump passes on the messages that are there now, without waiting.
func (d *Headless) Pump() {
	for {
		select {
		case msg := <-d.msgs:
			d.Send(msg)
		default:
			return
		}
	}
}

// Await passes messages on until ready reports true; it fails when ctx ends
// first. ready is asked after every message, and every 10 ms for what no
// message tells.
func (d *Headless) Await(ctx context.Context, ready func(*Model) bool) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !ready(d.model) {
		select {
		case msg := <-d.msgs:
			d.Send(msg)
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

var namedKeys = map[string]rune{
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
	"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "insert": tea.KeyInsert, "space": tea.KeySpace,
}

// Key makes the press of a key by its name: "j", "G", "enter", "ctrl+e".
func Key(name string) (tea.KeyPressMsg, error) {
	var k tea.KeyPressMsg
	rest := name
	for {
		mod, after, ok := strings.Cut(rest, "+")
		if !ok || after == "" {
			break
		}
		switch mod {
		case "ctrl":
			k.Mod |= tea.ModCtrl
		case "alt":
			k.Mod |= tea.ModAlt
		case "shift":
			k.Mod |= tea.ModShift
		default:
			return k, fmt.Errorf("key %q: %q is no modifier; allowed: ctrl, alt, shift", name, mod)
		}
		rest = after
	}
	if code, ok := namedKeys[rest]; ok {
		k.Code = code
		if rest == "space" && k.Mod == 0 {
			k.Text = " "
		}
		return k, nil
	}
	r, size := utf8.DecodeRuneInString(rest)
	if size == 0 || size != len(rest) || r == utf8.RuneError || !unicode.IsPrint(r) {
		return k, fmt.Errorf("key %q is unknown; allowed: one character, or enter, tab, esc, space, backspace, delete, arrows, home, end, pgup, pgdown", name)
	}
	k.Code = unicode.ToLower(r)
	if k.Mod&^tea.ModShift == 0 {
		k.Text = rest
		if unicode.IsUpper(r) {
			k.ShiftedCode, k.Mod = r, k.Mod|tea.ModShift
		}
	}
	return k, nil
}
