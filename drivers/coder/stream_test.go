package coder

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEventsAreRead(t *testing.T) {
	in := newEventReader(strings.NewReader(": hello\n\nevent: ping\n\nevent: data\r\ndata: one\r\ndata:two\r\n\r\nid: 1\nretry\ndata\n\n" +
		"event: big\ndata: " + strings.Repeat("x", 200_000) + "\n\nevent: cut"))
	var got []string
	for {
		kind, data, err := in.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		got = append(got, kind+"="+string(data[:min(len(data), 10)]))
	}
	if s := strings.Join(got, "|"); s != "ping=|data=one\ntwo|=|big=xxxxxxxxxx" {
		t.Errorf("%q", s)
	}
}

func TestAnEndlessEventIsRefused(t *testing.T) {
	for _, text := range []string{"data: ", "data: x\n"} {
		in := newEventReader(io.MultiReader(strings.NewReader("event: x\n"), &endless{text: text}))
		if _, _, err := in.next(); !errors.Is(err, errEventTooLong) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// endless repeats a text, the first time only as a beginning if it has no end.
type endless struct {
	text string
	n    int
}

func (e *endless) Read(p []byte) (int, error) {
	text := strings.Repeat(e.text, len(p)/len(e.text)+1)
	if !strings.HasSuffix(e.text, "\n") {
		text = strings.Repeat("x", len(p))
		if e.n == 0 {
			text = e.text + text
		}
	}
	n := copy(p, text)
	e.n += n - n%len(e.text) // keep lines whole
	if strings.HasSuffix(e.text, "\n") {
		return n - n%len(e.text), nil
	}
	return n, nil
}

func FuzzEvents(f *testing.F) {
	f.Add("event: message_update\ndata: {\"id\":1,\"role\":\"agent\",\"message\":\"hi\"}\n\n")
	f.Add("event: status_change\ndata: {\"status\":\"stable\"}\n\n")
	f.Add(":\n\ndata\r\n\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		in := newEventReader(strings.NewReader(s))
		for {
			kind, data, err := in.next()
			if err != nil {
				return
			}
			u, ok := readUpdate(kind, data)
			if ok && u.status != "" && u.status != "stable" && u.status != "running" {
				t.Errorf("status %q", u.status)
			}
			if text := tidy(u.Content); !utf8.ValidString(text) {
				t.Errorf("invalid %q", text)
			}
		}
	})
}
