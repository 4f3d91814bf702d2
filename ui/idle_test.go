package ui

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// tape keeps what a cockpit writes, and when.
type tape struct {
	mu   sync.Mutex
	text []string
	at   []time.Time
}

func (w *tape) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text, w.at = append(w.text, string(p)), append(w.at, time.Now())
	return len(p), nil
}

// first says how long after since the first write that holds a text came.
func (w *tape) first(t *testing.T, since time.Time, holds string) time.Duration {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, at := range w.at {
		if !at.Before(since) && strings.Contains(w.text[i], holds) {
			return at.Sub(since)
		}
	}
	t.Fatalf("%q was not written: %q", holds, w.text)
	return 0
}

// shown runs a cockpit of 80x24 on a tape, in a bubble, until the test ends it.
func shown(t *testing.T, remote term.Remote) (keys io.Writer, out *tape, end func()) {
	t.Helper()
	bindings := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	remote.Size = term.Size{Width: 80, Height: 24}
	opt := Options{
		Services: newWorld().services(), Keys: bindings, Theme: screen.NewTheme("test", nil), Caller: core.Caller{Tenant: tenant},
		Clock: &clock{now: start}, Terminal: &remote,
	}
	in, keys := io.Pipe()
	out = &tape{}
	done := expect.Later(func() error { return Show(t.Context(), opt, term.Caps{}, in, out) })
	return keys, out, func() {
		t.Helper()
		_, _ = io.WriteString(keys, "\x03\x03")
		expect.Is(t, <-done, nil)
		in.Close()
		time.Sleep(time.Minute) // the toolkit's timers go on after its end
		for _, s := range out.text {
			expect.True(t, !strings.Contains(s, restWord), "the word went on to the terminal: %q", s)
		}
		expect.Has(t, strings.Join(out.text, ""), "\x1b[?1049l", "the alternate screen was not left")
	}
}

func press(t *testing.T, keys io.Writer, s string) (at time.Time) {
	t.Helper()
	synctest.Wait()
	at = time.Now()
	expect.Of(io.WriteString(keys, s))(t)
	return at
}

func TestAKeyThatEndsARestIsSoonOnTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, out, end := shown(t, term.Remote{})
		defer end()
		for range 3 {
			time.Sleep(5*time.Second + 500*time.Millisecond)
			at := press(t, keys, ":")
			time.Sleep(200 * time.Millisecond)
			took := out.first(t, at, ":")
			expect.True(t, took <= 20*time.Millisecond, "the palette came after %v", took)
			press(t, keys, "\x1b")
			time.Sleep(time.Second)
		}
	})
}

func TestWhatIsSentBesideFramesEndsARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, out, end := shown(t, term.Remote{})
		defer end()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		at := press(t, keys, "y")
		time.Sleep(200 * time.Millisecond)
		took := out.first(t, at, "\x1b]52;")
		expect.True(t, took <= 20*time.Millisecond, "the clipboard came after %v", took)
	})
}

func TestASuspensionEndsARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended time.Time
		keys, _, end := shown(t, term.Remote{Suspend: func() { suspended = time.Now() }})
		defer end()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		at := press(t, keys, "\x1a")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		// The toolkit gives a reader half a second to leave.
		took := suspended.Sub(at)
		expect.True(t, !suspended.IsZero() && took <= 600*time.Millisecond, "suspended after %v", took)
	})
}

// lulled asks for a rest and hands the word to the clock, among what was sent
// besides; it says how long the clock stood.
func lulled(t *testing.T, r *rest, before, after string, meanwhile func()) time.Duration {
	t.Helper()
	raw, ok := r.filter(nil, restMsg{}).(tea.RawMsg)
	expect.Must(t, ok, "no word was sent")
	meanwhile()
	start := time.Now()
	expect.Of(r.Write([]byte(before + raw.Msg.(string) + after)))(t)
	return time.Since(start)
}

func TestTheClockRestsOnlyOnceTheNewestFrameIsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &tape{}
		r := newRest(out)
		r.send = func(tea.Msg) {}
		r.timer = time.AfterFunc(time.Hour, func() {})
		defer r.end()
		r.seen(tea.View{Content: "one"})
		expect.Is(t, lulled(t, r, "", "", func() { r.seen(tea.View{Content: "two"}) }), 0, "it stood for")
		expect.Is(t, lulled(t, r, "", "", func() {}), 0, "it stood for")
		expect.Is(t, lulled(t, r, "", "", func() {}), restFor, "it stood for")
		if stood := lulled(t, r, "a", "b", func() {
			time.AfterFunc(70*time.Millisecond, func() { r.seen(tea.View{Content: "three"}) })
		}); stood != 70*time.Millisecond {
			t.Errorf("it stood for %v beside a frame that came after 70 ms", stood)
		}
		expect.Is(t, strings.Join(out.text, ""), "ab", "the terminal was told")
	})
}
