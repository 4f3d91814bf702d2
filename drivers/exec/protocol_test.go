package exec

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestEachKindOfLineBecomesItsEvent(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"type":"message","text":"hi"}`, "message hi"},
		{` {"type":"log","level":"ERROR","message":"bad"} `, "log ERROR bad"},
		{`{"type":"tool_request","call_id":"c","tool":"write","args":{"a": 1},"intent":"save","risk":"high"}`, `tool_request c write {"a":1} save high`},
		{`{"type":"tool_request","call_id":"c","tool":"write"}`, `tool_request c write {}`},
		{`{"type":"tool_result","call_id":"c","status":"ok","result":{}}`, "tool_result c ok {}"},
		{`{"type":"usage","tokens":5,"cost_usd":0.25}`, "usage"},
		{`{"type":"attention","message":"help"}`, "attention help"},
		{`{"type":"result","status":"failed","error":"why"}`, "result failed {} why"},
		{`{"type":"unknown","text":"hi"}`, `INFO {"type":"unknown","text":"hi"}`},
		{`plain`, "INFO plain"},
	} {
		e, err := parse([]byte(c.line))
		expect.No(t, err, c.line)
		got := strings.Join(strings.Fields(strings.Join([]string{
			e.Type, e.CallID, e.Tool, e.Status, string(e.Args), string(e.Output), e.Intent, e.Risk, e.Level, e.Text, e.Error,
		}, " ")), " ")
		expect.Is(t, got, c.want, c.line)
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range noisy {
		if len(line) < 1000 {
			f.Add([]byte(line))
		}
	}
	f.Add([]byte(`{"type":"result","status":"succeeded","output":{"a":[1,2]},"confidence":0.5}`))
	f.Add([]byte(`{"type":"tool_request","call_id":"c","tool":"t","args":{"x":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := parse(line)
		if bad := (*malformed)(nil); err != nil && (!errors.As(err, &bad) || len(bad.callID) > maxCallID) {
			t.Fatalf("error %v", err)
		}
		for _, s := range []string{e.Text, e.Tool, e.CallID, e.Error, e.Intent} {
			expect.Must(t, utf8.ValidString(s), "%q is not valid UTF-8", s)
		}
		for _, v := range []core.Raw{e.Args, e.Output} {
			expect.Must(t, v == nil || core.CheckObject("value", v, maxAgentLine) == nil, "%q is no object", v)
		}
	})
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\nlast"), 3, 2)
	f.Fuzz(func(t *testing.T, data []byte, most, step int) {
		most, step = 1+most&63, 1+step&15
		var got []byte
		cuts := 0
		s := &pipe.Splitter{Max: most, Emit: func(line []byte, cut int) {
			expect.Must(t, len(line) <= most && bytes.IndexByte(line, '\n') < 0, "line %q of at most %d", line, most)
			got = append(append(got, line...), '\n')
			cuts += cut
		}}
		for rest := data; len(rest) > 0; rest = rest[min(step, len(rest)):] {
			_, _ = s.Write(rest[:min(step, len(rest))])
		}
		s.Close()
		expect.Must(t, bytes.Count(got, []byte{'\n'}) >= bytes.Count(data, []byte{'\n'}), "%q became %q", data, got)
		if cuts == 0 && !bytes.ContainsRune(data, '\r') && !bytes.Equal(bytes.TrimSuffix(got, []byte{'\n'}), bytes.TrimSuffix(data, []byte{'\n'})) {
			t.Fatalf("%q became %q", data, got)
		}
	})
}

func touch(t *testing.T, path string) {
	t.Helper()
	expect.No(t, os.WriteFile(path, nil, 0o600))
}
