package ui

import (
	"io"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

func TestWhatIsTypedWhileTheScreenIsLentWaits(t *testing.T) {
	r, w := io.Pipe()
	in := newInput(r)
	defer in.end()
	got := make(chan string, 4)
	read := func() {
		p := make([]byte, 9)
		n, _ := in.Read(p)
		got <- string(p[:n])
	}
	lent := in.of(&term.Remote{Suspend: func() {}})
	for range 100 { // whoever is first
		go read()
		lent.Hold()
		typed := make(chan struct{})
		go func() { defer close(typed); _, _ = w.Write([]byte("q")) }()
		now := <-got
		expect.Must(t, now == "", "a held Read gave %q", now)
		go read() // as the toolkit does, before it is told to give up
		lent.Suspend()
		if now := <-got; now == "" {
			read()
			now = <-got
			expect.Must(t, now == "q", "after it %q", now)
		}
		<-typed
	}
}

func TestAWokenReadLosesNothing(t *testing.T) {
	r, w := io.Pipe()
	in := newInput(r)
	defer in.end()
	read := func(n int) string {
		t.Helper()
		p := make([]byte, n)
		n = expect.Of(in.Read(p))(t)
		return string(p[:n])
	}
	go func() { _, _ = w.Write([]byte("abc")) }()
	expect.Is(t, read(2)+read(2), "abc", "read")
	in.wake() // as the screen is lent
	expect.Is(t, read(9), "", "a woken Read gave")
	go func() {
		_, _ = w.Write([]byte("d"))
		w.Close()
	}()
	expect.Is(t, read(9), "d", "after it")
	_, err := in.Read(make([]byte, 1))
	expect.True(t, err == io.EOF, "at the end %v", err)
}

func TestAFilterBeginsAnewAndFindsWhatRowsAreOf(t *testing.T) {
	r := newRig(t, 80, 24)
	filter := func(text string) string {
		r.keys("/")
		r.typeText(text)
		r.keys("enter")
		return r.m.focused().FilterText()
	}
	filter("project:quick since:3m")
	r.has("fleet 2/5") // scribe became what it is 3 minutes ago
	expect.Is(t, filter("agent:todo"), "agent:todo", "filter")
	r.has("fleet 1/5")
	filter("project:other")
	r.has("nothing passes the filter")
	expect.Is(t, filter(""), "", "filter")
	r.has("fleet 5")
	r.keys("/", "up", "enter")
	expect.Is(t, r.m.focused().FilterText(), "project:other", "filter")
	r.keys("/")
	r.typeText("since:soon")
	r.keys("enter")
	r.has("allowed: a time like")
}
