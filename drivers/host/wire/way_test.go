package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"swarmdeck/drivers/host/wire"
	"swarmdeck/expect"
)

// stream is one that was written or is to be read.
type stream struct {
	bytes.Buffer
	closed bool
}

func (s *stream) Close() error { s.closed = true; return nil }

func TestATunnelTellsAnEndFromABreak(t *testing.T) {
	for _, ends := range []bool{true, false} {
		s := new(stream)
		out := wire.NewTunnel(s)
		text := strings.Repeat("abc", 20_000)
		expect.No(t, out.Begin(wire.Way{Run: "R1", Port: 3128, PID: 7, Process: "a\x1bb"}))
		n, err := io.WriteString(out, text)
		expect.True(t, n == len(text) && err == nil, "%v %v", n, err)
		expect.True(t, !ends || out.CloseWrite() == nil, "no end")
		in := wire.NewTunnel(s)
		w, err := in.Begun()
		expect.True(t, err == nil && w.Run == "R1" && w.Process == "a b", "%+v %v", w, err)
		got, err := io.ReadAll(in)
		expect.True(t, string(got) == text && errors.Is(err, io.ErrUnexpectedEOF) != ends && (err == nil) == ends, "ends %v: %d bytes, %v", ends, len(got), err)
		expect.True(t, in.Close() == nil && s.closed, "it is open")
	}
}

func TestAWayThatCantBeIsRefused(t *testing.T) {
	for name, w := range map[string]wire.Way{"run": {Run: "../x", Port: 1}, "port": {Run: "R", Port: 70_000}, "pid": {Run: "R", Port: 1, PID: -1}, "size": {Run: "R", Port: 1, Process: strings.Repeat("x", 2000)}} {
		s := new(stream)
		expect.No(t, wire.NewTunnel(s).Begin(w))
		expect.Fails(t, expect.Fault(wire.NewTunnel(s).Begun()), name, "was taken")
	}
}

func FuzzTunnel(f *testing.F) {
	s := new(stream)
	t := wire.NewTunnel(s)
	_ = t.Begin(wire.Way{Run: "R1", Port: 3128})
	_, _ = t.Write([]byte("hello"))
	_ = t.CloseWrite()
	f.Add(s.Bytes())
	f.Add([]byte{0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := new(stream)
		s.Write(data)
		in := wire.NewTunnel(s)
		w, err := in.Begun()
		if err == nil && (w.Port < 1 || w.Port > 65535 || len(w.Process) > 256) {
			t.Errorf("%+v", w)
		}
		got, _ := io.ReadAll(in)
		expect.True(t, len(got) <= len(data), "%d bytes of %d", len(got), len(data))
	})
}
