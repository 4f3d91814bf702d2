package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// far is the other side of a connection, played by the test.
type far struct {
	t    *testing.T
	conn *Conn
	in   *io.PipeWriter
	end  chan error

	mu    sync.Mutex
	sent  []string // by us
	noise []string
	heard []*Request
}

func connect(t *testing.T) *far {
	t.Helper()
	f := &far{t: t, end: make(chan error, 1)}
	r, w := io.Pipe()
	f.in = w
	f.conn = New(Options{
		Send: func(line []byte) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sent = append(f.sent, string(line))
			return nil
		},
		Handle: func(r *Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.heard = append(f.heard, r)
		},
		Noise: func(line []byte, cut int) error {
			if strings.HasPrefix(string(line), "fatal") {
				return errors.New("that was fatal")
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.noise = append(f.noise, fmt.Sprintf("%.20s+%d", line, cut))
			return nil
		},
	})
	go func() { f.end <- f.conn.Run(r) }()
	t.Cleanup(func() {
		w.Close()
		<-f.end
	})
	return f
}

func (f *far) says(lines ...string) {
	f.t.Helper()
	expect.Of(io.WriteString(f.in, strings.Join(lines, "\n")+"\n"))(f.t)
}

func TestAnAnswerFindsItsCall(t *testing.T) {
	f := connect(t)
	one, two := f.conn.Start("first", map[string]int{"n": 1}), f.conn.Start("second", struct{}{})
	f.says(`{"jsonrpc":"2.0","id":2,"result":{"ok":true}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"details":"no disk"}}}`)
	<-one.Done
	<-two.Done
	var refused *Error
	expect.True(t, errors.As(one.Err, &refused) && refused.Code == InternalError && one.Err.Error() == "Internal error: no disk (-32603)", "first: %v", one.Err)
	expect.True(t, two.Err == nil && string(two.Result) == `{"ok":true}`, "second: %s, %v", two.Result, two.Err)
	want := `{"jsonrpc":"2.0","id":1,"method":"first","params":{"n":1}}`
	expect.True(t, f.sent[0] == want, "sent %s, want %s", f.sent[0], want)
}

func TestWhatCameBeforeAnAnswerWasHandedOverBeforeIt(t *testing.T) {
	f := connect(t)
	for range 100 {
		call := f.conn.Start("work", struct{}{})
		var lines []string
		for i := range 20 {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"news","params":{"n":%d}}`, i))
		}
		id := strings.Split(strings.Split(f.sent[len(f.sent)-1], `"id":`)[1], ",")[0]
		lines = append(lines, `{"jsonrpc":"2.0","id":`+id+`,"result":null}`)
		go func() { _, _ = io.WriteString(f.in, strings.Join(lines, "\n")+"\n") }()
		<-call.Done
		f.mu.Lock()
		for i, r := range f.heard {
			if want := fmt.Sprintf(`{"n":%d}`, i); string(r.Params) != want || r.Wants() {
				t.Fatalf("%d: %s %s", i, r.Method, r.Params)
			}
		}
		expect.Must(t, len(f.heard) == 20, "%d notifications before the answer", len(f.heard))
		f.heard = nil
		f.mu.Unlock()
	}
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	f := connect(t)
	f.says(`{"jsonrpc":"2.0","id":"a-1","method":"ask","params":{"x":1}}`, `{"jsonrpc":"2.0","id":null,"method":"tell"}`, `{"jsonrpc":"2.0","method":"end"}`)
	expect.Await(t, "all three are heard", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.heard) == 3
	})
	f.heard[0].Reply(map[string]bool{"yes": true})
	f.heard[0].Fail(Errorf(InternalError, "too late"))
	f.heard[1].Reply("nobody asked")
	want := `{"jsonrpc":"2.0","id":"a-1","result":{"yes":true}}`
	expect.True(t, len(f.sent) == 1 && f.sent[0] == want, "sent %q, want %s", f.sent, want)
}

func TestNoiseIsNoEnd(t *testing.T) {
	f := connect(t)
	call := f.conn.Start("work", struct{}{})
	f.says("", "hello", "[]", "{", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":77,"result":1}`, `{"jsonrpc":"2.0","id":"1","result":1}`)
	f.says(strings.Repeat("x", MaxLine+5))
	f.says(`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2,"text":"` + "\xff" + `"}}`)
	<-call.Done
	expect.True(t, call.Err == nil && strings.Contains(string(call.Result), "\uFFFD"), "%s, %v", call.Result, call.Err)
	n := len(f.noise)
	expect.True(t, n == 8 && f.noise[7] == strings.Repeat("x", 20)+"+5", "noise %q", f.noise)
}

func TestTheEndFailsWhatIsOpen(t *testing.T) {
	f := connect(t)
	call := f.conn.Start("work", struct{}{})
	f.says("fatal")
	<-call.Done
	<-f.conn.Done()
	expect.True(t, errors.Is(call.Err, ErrClosed) && strings.Contains(call.Err.Error(), "that was fatal"), "open call: %v", call.Err)
	expect.Err(t, f.conn.Start("more", struct{}{}).Err, ErrClosed, "late call")
}

func TestACallEndsWithItsContext(t *testing.T) {
	f := connect(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	err := f.conn.Call(ctx, "work", struct{}{}, nil)
	expect.True(t, err != nil && err.Error() == "work: enough", "call: %v", err)
	expect.Is(t, len(f.conn.calls), 0, "calls wait for an answer")
	f.says(`{"jsonrpc":"2.0","id":1,"result":{}}`, "hello") // the answer comes late, which is no noise
	next := f.conn.Start("more", struct{}{})
	f.says(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	<-next.Done
	f.mu.Lock()
	defer f.mu.Unlock()
	expect.True(t, len(f.noise) == 1 && f.noise[0] == "hello+0", "noise %q", f.noise)
}

func FuzzALineIsAMessageOrNoise(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"x","method":"m","params":[1]}`, `{"id":{},"method":""}`, "{", "",
		`{"jsonrpc":"2.0","error":{"code":"x"}}`, `{"id":1e2,"result":0}`, "\xff", `{"method":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		handled, noise := 0, 0
		c := New(Options{
			Send:   func([]byte) error { return nil },
			Handle: func(r *Request) { handled++; r.Reply(core.Raw("{}")) },
			Noise:  func([]byte, int) error { noise++; return nil },
		})
		call := c.Start("work", struct{}{})
		_ = c.Run(bytes.NewReader(append(line, '\n')))
		<-call.Done
		if handled+noise > 1 || handled+noise == 0 && errors.Is(call.Err, ErrClosed) {
			t.Errorf("%q: %d handled, %d noise, call %v", line, handled, noise, call.Err)
		}
	})
}
