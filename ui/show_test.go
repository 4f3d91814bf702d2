package ui

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/view"
	"swarmdeck/expect"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// broken is a world that fails while the cockpit runs.
type broken struct {
	*fakeWorld
	looks int
}

func (b *broken) Snapshot(t string) *view.Snapshot {
	if b.looks++; b.looks > 1 {
		panic("a bug")
	}
	return b.fakeWorld.Snapshot(t)
}

func TestAPanicRestoresTheTerminalAndIsAnError(t *testing.T) {
	keys := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	w := &broken{fakeWorld: newWorld()}
	var out bytes.Buffer
	services := w.services()
	services.View = w
	opt := Options{Services: services, Keys: keys, Theme: screen.NewTheme("test", nil), Caller: core.Caller{Tenant: tenant}}
	time.AfterFunc(50*time.Millisecond, func() { w.change(func() {}) })
	err := Show(t.Context(), opt, term.Caps{}, strings.NewReader(""), &out)
	expect.Must(t, errors.Is(err, tea.ErrProgramPanic), "error %v", err)
	expect.Must(t, strings.Contains(out.String(), "\x1b[?1049l"), "the alternate screen was not left")
}

func TestShowEndsWithItsContext(t *testing.T) {
	keys, _ := keymap.Load(nil, "", keymap.Words())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	opt := Options{Services: newWorld().services(), Keys: keys, Theme: screen.NewTheme("test", nil), Caller: core.Caller{Tenant: tenant}}
	var out bytes.Buffer
	err := Show(ctx, opt, term.Caps{}, strings.NewReader(""), &out)
	expect.Must(t, errors.Is(err, context.DeadlineExceeded), "error %v", err)
	said := out.String()
	expect.True(t, strings.HasPrefix(said, pushTitle) && strings.HasSuffix(said, popTitle), "the title is not given back: %q", said)
}

// stays counts who is here.
type stays struct{ n *int }

func (s stays) ID() uint64  { return 1 }
func (s stays) Look(string) {}
func (s stays) Leave()      { *s.n-- }

func TestAScriptsCockpitLeavesWhenItIsClosed(t *testing.T) {
	keys := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	here := 0
	d := NewHeadless(Options{
		Services: newWorld().services(), Keys: keys, Theme: screen.NewTheme("test", nil), Caller: core.Caller{Tenant: tenant},
		Enter: func(string) Stay { here++; return stays{&here} },
	}, 80, 24)
	expect.Is(t, here, 1, "here")
	d.Close()
	expect.Is(t, here, 0, "here after it was closed")
}
