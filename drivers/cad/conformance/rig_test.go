package conformance_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/drivers/cad/freecad/freecadtest"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// engine is compiled once for all tests.
var engine *embedded.Engine

func TestMain(m *testing.M) {
	engine = embedded.New(embedded.Options{CacheDir: embedded.CodeCache()})
	code := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if code == 0 && whole {
		if missing := forgotten(); len(missing) > 0 {
			fmt.Fprintln(os.Stderr, "no test asks for", strings.Join(missing, ", "))
			code = 1
		}
	}
	if err := engine.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// kernel is one that the suite runs on.
type kernel struct {
	name string
	open func(context.Context) (env.Kernel, error)
	// relative is how far volumes may be from exact ones (requirement 6.3).
	relative float64
}

// installed looks for FreeCAD once.
var installed = freecadtest.Find

var kernels = []kernel{
	{name: env.Embedded, open: func(ctx context.Context) (env.Kernel, error) { return engine.Open(ctx) }, relative: 1e-3},
	{name: env.OCCT, open: func(ctx context.Context) (env.Kernel, error) {
		i, err := installed()
		if err != nil {
			return nil, err
		}
		return freecad.Open(ctx, freecad.Options{Installation: i})
	}, relative: 1e-6},
}

// need skips a test where the kernel is missing.
func (k kernel) need(t testing.TB) {
	t.Helper()
	if k.name != env.OCCT {
		return
	}
	if _, err := installed(); errors.Is(err, freecad.ErrNotFound) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// onEach runs a test on every kernel, and compares what they answered.
func onEach(t *testing.T, run func(r *rig), change ...func(*env.Options)) {
	t.Helper()
	answers := map[string][]string{}
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			k.need(t)
			r := start(t, k, change...)
			run(r)
			answers[k.name] = r.seen
		})
	}
	a, b := answers[env.Embedded], answers[env.OCCT]
	if t.Failed() || a == nil || b == nil {
		return
	}
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a) || i >= len(b):
			t.Fatalf("%d answers of %s, %d of %s", len(a), env.Embedded, len(b), env.OCCT)
		case a[i] != b[i]:
			t.Errorf("answer %d has another shape\n%s: %s\n%s: %s", i+1, env.Embedded, a[i], env.OCCT, b[i])
		}
	}
}

// rig is an environment on a kernel, and a client of it.
type rig struct {
	testing.TB
	kernel
	env   *env.Env
	about env.About
	conn  *jsonrpc.Conn
	dir   string
	// seen is the shape of each answer: its method and members. Answers that
	// kernels may differ in are left out.
	seen []string
	// entries are those that came with answers, of an environment with a journal.
	entries []core.Raw
	// asked is the number of requests so far, which number their ids.
	asked int
	// progress counts the notifications that came.
	progress atomic.Int64
}

// called are the methods that some test has asked of each kernel.
var called sync.Map // "KERNEL METHOD" to true

// offered are the methods that hello tells of, by kernel.
var offered sync.Map // kernel to []any

// forgotten are the methods that no test asks for: what a suite forgets, it does
// not compare.
func forgotten() (missing []string) {
	offered.Range(func(name, methods any) bool {
		for _, m := range methods.([]any) {
			if _, used := called.Load(fmt.Sprintf("%s %s", name, m)); !used {
				missing = append(missing, fmt.Sprintf("%s: %s", name, m))
			}
		}
		return true
	})
	return missing
}

func start(t testing.TB, k kernel, change ...func(*env.Options)) *rig {
	t.Helper()
	o := env.Options{Open: k.open, Dir: t.TempDir(), Version: "test"}
	for _, f := range change {
		f(&o)
	}
	e := expect.Of(env.New(t.Context(), o))(t)
	t.Cleanup(func() { expect.Is(t, e.Close(), nil) })
	r := &rig{TB: t, kernel: k, env: e, about: e.About(), dir: o.Dir}
	r.connect()
	return r
}

// connect speaks with the environment as a program on the other side of pipes.
func (r *rig) connect() {
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	r.conn = jsonrpc.New(jsonrpc.Options{
		Send: func(line []byte) error { _, err := in.Write(append(line, '\n')); return err },
		Handle: func(n *jsonrpc.Request) {
			expect.True(r, n.Method == "$/progress" && !n.Wants(), "the environment asks for %s", n.Method)
			r.progress.Add(1)
		},
		Noise: func(line []byte, _ int) error { return fmt.Errorf("no message: %.100s", line) },
	})
	var all sync.WaitGroup
	all.Go(func() {
		expect.Is(r, r.env.Serve(context.Background(), requests, answers), nil, "Serve")
		answers.Close()
	})
	all.Go(func() { _ = r.conn.Run(out) })
	r.Cleanup(func() {
		in.Close()
		all.Wait()
	})
}

// obj is a JSON object or, of a list, its member "items".
type obj map[string]any

// try asks, and returns the data of a success or the refusal.
func (r *rig) try(method string, params obj) (obj, *env.Error) {
	r.Helper()
	var answer struct {
		Status   string `json:"status"`
		Data     obj    `json:"data"`
		Metadata struct {
			Operation string   `json:"operation_type"`
			Millis    *float64 `json:"execution_time_ms"`
			Entry     core.Raw `json:"entry"`
		} `json:"metadata"`
	}
	called.Store(r.name+" "+method, true)
	r.asked++
	err := r.conn.Call(context.Background(), method, params, &answer)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		e := &env.Error{Code: env.Code(refused.Code), Message: refused.Message}
		expect.No(r, core.Decode(refused.Data, &e.Data), method, "error data", refused.Data)
		return nil, e
	}
	expect.No(r, err)
	expect.Must(r, answer.Status == "success" && answer.Metadata.Operation == method && answer.Metadata.Millis != nil,
		"%s: status %q, metadata %+v", method, answer.Status, answer.Metadata)
	if answer.Metadata.Entry != nil {
		r.entries = append(r.entries, answer.Metadata.Entry)
	}
	return answer.Data, nil
}

// do asks for what must succeed.
func (r *rig) do(method string, params obj) obj {
	r.Helper()
	data, err := r.try(method, params)
	if err != nil {
		r.Fatalf("%s %v: %v (%+v)", method, params, err, err.Data)
	}
	r.seen = append(r.seen, method+" "+members(map[string]any(data)))
	return data
}

// own asks for what only this kernel answers in that way.
func (r *rig) own(method string, params obj) obj {
	r.Helper()
	data := r.do(method, params)
	r.seen = r.seen[:len(r.seen)-1]
	return data
}

// refuse asks for what must be refused for a reason that names the field.
func (r *rig) refuse(code env.Code, field, method string, params obj) *env.Error {
	r.Helper()
	data, err := r.try(method, params)
	expect.Must(r, err != nil, "%s %v: %v, want a refusal %d", method, params, data, code)
	if err.Code != code || err.Data.Field != field || err.Data.Name == "" || err.Data.Suggestion == "" || err.Message == "" {
		r.Errorf("%s %v: refusal %d of field %q: %s (%+v), want %d of %q with a suggestion", method, params, err.Code, err.Data.Field, err.Message, err.Data, code, field)
	}
	r.seen = append(r.seen, fmt.Sprintf("%s refused %d %s %s", method, err.Code, err.Data.Name, err.Data.Field))
	return err
}

// unsupported asks for what this kernel can't and the other can.
func (r *rig) unsupported(field, method string, params obj) {
	r.Helper()
	before := r.do("history.list", nil)["total_count"]
	err := r.refuse(env.UnsupportedByKernel, field, method, params)
	r.seen = r.seen[:len(r.seen)-2]
	expect.Has(r, err.Data.Suggestion, env.OCCT, method, "suggestion")
	expect.Is(r, r.own("history.list", nil)["total_count"], before, method, "refused, but the history has")
}

// members is the shape of a JSON value: the names in objects, and what lists
// hold first.
func members(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var out []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, name+":"+members(v[name]))
		}
		return "{" + strings.Join(out, " ") + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + members(v[0]) + "]"
	}
	return fmt.Sprintf("%T", v)
}
