package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"swarmdeck/drivers/sse"
	"swarmdeck/expect"
)

func TestEventsAreRead(t *testing.T) {
	var got []string
	err := sse.Each(strings.NewReader(": hello\n\nevent: ping\n\nevent: data\r\ndata: one\r\ndata:two\r\n\r\nid: 1\nretry\ndata\n\nevent: mac\rdata: x\r\r"+
		"event: big\ndata: "+strings.Repeat("x", 200_000)+"\n\nevent: cut"), 1<<20, func(kind string, data []byte) error {
		got = append(got, kind+"="+string(data[:min(len(data), 10)]))
		return nil
	})
	s := strings.Join(got, "|")
	expect.True(t, s == "ping=|data=one\ntwo|=|mac=x|big=xxxxxxxxxx" && err == io.EOF, "%q %v", s, err)
	enough := errors.New("enough")
	expect.Is(t, sse.Each(strings.NewReader("data: x\n\ndata: y\n\n"), 10, func(string, []byte) error { return enough }), enough)
}

func TestAnEventThatIsTooLongIsRefused(t *testing.T) {
	none := func(string, []byte) error { return nil }
	for _, text := range []string{"data: ", "data: x\n"} {
		expect.Says(t, sse.Each(io.MultiReader(strings.NewReader("event: x\n"), &endless{text: text}), 8<<20, none), "longer than 8388608 bytes", text)
	}
	err := sse.Each(strings.NewReader("data: 1234567890\n\ndata: x\n\n"), 10, none)
	expect.True(t, err != nil && err != io.EOF, "%v", err)
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
	f.Add(3, "event: a\ndata: 1\r\n\r\ndata: 2\r\r:\n")
	f.Fuzz(func(t *testing.T, piece int, s string) {
		var all [2]strings.Builder
		for i, n := range []int{len(s) + 1, max(1, piece%64)} {
			e := sse.Events{Most: 32, Missed: func(int) { all[i].WriteString("missed\n") }, Event: func(name string, data []byte) {
				expect.True(t, len(data) <= 32, "%d bytes", len(data))
				all[i].WriteString(name + "=" + string(data) + "\n")
			}}
			for left := s; left != ""; left = left[min(n, len(left)):] {
				e.Write([]byte(left[:min(n, len(left))]))
			}
			e.Close()
		}
		expect.True(t, all[0].String() == all[1].String(), "at once %q, in pieces %q", &all[0], &all[1])
	})
}
