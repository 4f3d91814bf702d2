package workdir

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// asks has a directory answer a request over pipes.
func asks(t *testing.T, d Dir, r Request) (Answer, error) {
	t.Helper()
	in, ask := io.Pipe()
	answer, out := io.Pipe()
	go func() {
		_ = d.Serve(in, out)
		in.Close()
		out.Close()
	}()
	return Ask(ask, answer, r)
}

func TestARequestIsAnsweredOrSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	d := Dir{Spec: cell.Spec{Dir: dir}}
	a, err := asks(t, d, Request{Op: OpReal})
	expect.True(t, err == nil && a.Path == d.Real(), "%+v %v", a, err)
	expect.No(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	a, err = asks(t, d, Request{Op: OpSub, Path: dir + "/sub"})
	expect.True(t, err == nil && filepath.Base(a.Path) == "sub", "%+v %v", a, err)
	for _, r := range []Request{{Op: OpSub, Path: "/"}, {Op: "other"}, {Op: OpRead, Path: "x"}, {Op: OpLook, Argv: []string{"cat", "x"}, Path: "/"}} {
		expect.Err(t, expect.Fault(asks(t, d, r)), core.Kind(core.InvalidInput), r)
	}
}

func FuzzAnAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"path":"/x"}`, `{"content":"YQ=="}`, `{"error":"no\u001b[2J","why":"not_exist"}`, `{"files":[{"path":"a","sha256":"00","size":1}],"texts":["YQ=="]}`,
		`{"files":[{"path":""}]}`, `{"texts":["YQ=="]}`, `[]`, "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := Ask(io.Discard, bytes.NewReader(append(line, '\n')), Request{Op: OpReal})
		if err != nil {
			expect.True(t, a.Error == "" || !strings.ContainsAny(err.Error(), "\x1b\n\x00"), "%q", err)
			_ = errors.Is(err, fs.ErrNotExist)
			return
		}
		for _, file := range a.Files {
			expect.True(t, file.Path != "" && !strings.ContainsAny(file.Path+file.Unbound, "\x1b\n\x00") && file.Size >= 0, "%+v", file)
		}
	})
}

func FuzzARequest(f *testing.F) {
	d := Dir{Spec: cell.Spec{Dir: f.TempDir()}}
	for _, seed := range []string{`{"op":"real"}`, `{"op":"sub","path":"/"}`, `{"op":"look","argv":["cat","a"],"path":"/"}`, `{"op":"read","path":"../x","most":-1}`, "{", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if strings.Contains(string(line), "ead") || strings.Contains(string(line), "rite") {
			return // what touches files has tests of its own
		}
		_ = d.Serve(bytes.NewReader(append(line, '\n')), io.Discard)
	})
}
