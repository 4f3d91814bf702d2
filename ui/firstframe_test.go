package ui

import (
	"io"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"swarmdeck/expect"
)

// newEarly is an early terminal with a way to read all it got.
func newEarly(t *testing.T) (e *firstFrame, written func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	expect.No(t, err)
	return &firstFrame{tty: w, to: w, profile: colorprofile.ANSI}, func() string {
		w.Close()
		defer r.Close()
		all := expect.Of(io.ReadAll(r))(t)
		return string(all)
	}
}

func TestTheFirstFrameIsShownBeforeTheToolkitsOwn(t *testing.T) {
	e, written := newEarly(t)
	e.paint("\x1b[38;2;255;0;0mone\x1b[m\ntwo")
	e.paint("again")
	_, _ = e.Write([]byte("\x1b[?1049hfrom here on"))
	e.paint("too late")
	_, _ = e.Write([]byte("\x1b[?1049lstopped\x1b[?1049hback"))
	e.leave()
	got := written()
	if !strings.HasPrefix(got, "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J\x1b[91mone\x1b[m\r\ntwofrom here on") || strings.Contains(got, "again") || strings.Contains(got, "late") {
		t.Errorf("wrote %q", got)
	}
	expect.True(t, strings.HasSuffix(got, "\x1b[?1049lstopped\x1b[?1049hback"), "what the toolkit did with its own screen: %q", got)
}

func TestAFirstFrameThatComesAfterTheToolkitsIsNotShown(t *testing.T) {
	e, written := newEarly(t)
	_, _ = e.Write([]byte("hello"))
	e.paint("frame")
	e.leave()
	expect.Is(t, written(), "hello", "wrote")
}

func TestAFirstFrameWithoutASecondIsTakenAway(t *testing.T) {
	e, written := newEarly(t)
	e.paint("frame")
	_, _ = e.Write([]byte("\x1b[?2026$p")) // it asked, and ended
	e.leave()
	got := written()
	expect.True(t, strings.HasSuffix(got, "\x1b[?1049l\x1b[?25h"), "wrote %q", got)
}

func TestTheFirstFrameIsHandedOutOnceItHasASize(t *testing.T) {
	var frames []string
	r := rigOn(t, newWorld(), 0, 0, Options{First: func(frame string) { frames = append(frames, frame) }})
	expect.Must(t, len(frames) == 0, "a frame without a size: %q", frames)
	for range 2 {
		r.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		r.keys("j")
	}
	expect.True(t, len(frames) == 1 && strings.Contains(frames[0], tenant) && strings.Count(frames[0], "\n") == 23, "%d frames: %q", len(frames), frames)
}
