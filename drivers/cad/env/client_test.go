package env_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// engine is compiled once for all tests of the package.
var engine *embedded.Engine

func TestMain(m *testing.M) {
	engine = embedded.New(embedded.Options{CacheDir: embedded.CodeCache()})
	code := m.Run()
	engine.Close()
	os.Exit(code)
}

// client speaks to an environment as a program on the other side of a pipe.
type client struct {
	t    testing.TB
	in   io.WriteCloser
	out  *bufio.Reader
	id   int
	dir  string
	done chan error
	// notes are the notifications that came.
	notes []core.Raw
}

// start begins an environment and a client of it.
func start(t testing.TB, change ...func(*env.Options)) *client {
	t.Helper()
	o := env.Options{Open: engine.Open, Dir: t.TempDir(), Version: "test"}
	for _, f := range change {
		f(&o)
	}
	e := expect.Of(env.New(t.Context(), o))(t)
	t.Cleanup(func() { expect.Is(t, e.Close(), nil) })
	return connect(t, e, o.Dir)
}

// connect is one more client of an environment.
func connect(t testing.TB, e *env.Env, dir string) *client {
	t.Helper()
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	c := &client{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20), dir: dir, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := e.Serve(ctx, requests, answers)
		answers.Close()
		requests.Close()
		c.done <- err
	}()
	t.Cleanup(func() {
		in.Close()
		go io.Copy(io.Discard, out)
		err := <-c.done
		expect.True(t, err == nil || errors.Is(err, io.ErrClosedPipe), "Serve: %v", err)
		cancel()
	})
	return c
}

// response is what came back.
type response struct {
	Version string     `json:"jsonrpc"`
	ID      core.Raw   `json:"id"`
	Result  *outcome   `json:"result"`
	Error   *env.Error `json:"error"`
	Method  string     `json:"method"`
	Params  core.Raw   `json:"params"`
}

type outcome struct {
	Status   string         `json:"status"`
	Data     map[string]any `json:"data"`
	Metadata struct {
		Operation string   `json:"operation_type"`
		Millis    int64    `json:"execution_time_ms"`
		Entry     core.Raw `json:"entry"`
	} `json:"metadata"`
}

// send writes one line.
func (c *client) send(line string) {
	c.t.Helper()
	expect.Of(io.WriteString(c.in, line+"\n"))(c.t)
}

// line reads one line.
func (c *client) line() string {
	c.t.Helper()
	line := expect.Of(c.out.ReadString('\n'))(c.t)
	return strings.TrimSuffix(line, "\n")
}

// receive reads one answer; notifications before it are put aside.
func (c *client) receive() response {
	c.t.Helper()
	for {
		line := c.line()
		var r response
		expect.No(c.t, core.Decode([]byte(line), &r), line)
		expect.Must(c.t, r.Version == "2.0", "no JSON-RPC 2.0: %s", line)
		if r.Method != "" {
			c.notes = append(c.notes, r.Params)
			continue
		}
		return r
	}
}

// try asks for one method and answers what came.
func (c *client) try(method, params string) response {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params))
	r := c.receive()
	expect.Must(c.t, string(r.ID) == fmt.Sprint(c.id), "%s: answer to %s, not to %d", method, r.ID, c.id)
	expect.Must(c.t, (r.Result == nil) != (r.Error == nil), "%s: result and error: %+v", method, r)
	return r
}

// do asks for what must succeed.
func (c *client) do(method, params string) map[string]any {
	c.t.Helper()
	r := c.try(method, params)
	if r.Error != nil {
		c.t.Fatalf("%s %s: %v: %+v", method, params, r.Error, r.Error.Data)
	}
	expect.Must(c.t, r.Result.Status == "success" && r.Result.Metadata.Operation == method, "%s: %+v", method, r.Result)
	return r.Result.Data
}

// fails asks for what must be refused, with a number and a field.
func (c *client) fails(code env.Code, field, method, params string) *env.Error {
	c.t.Helper()
	r := c.try(method, params)
	if r.Error == nil {
		c.t.Fatalf("%s %.300s succeeded: %v", method, params, r.Result.Data)
	}
	expect.True(c.t, r.Error.Code == code && r.Error.Data.Field == field && r.Error.Data.Name != "",
		"%s %.300s: code %d, field %q, %+v; want code %d, field %q", method, params, r.Error.Code, r.Error.Data.Field, r.Error, code, field)
	return r.Error
}

// near checks a number within a relative difference.
func (c *client) near(what string, got any, want, within float64) {
	c.t.Helper()
	v, ok := got.(float64)
	expect.True(c.t, ok && math.Abs(v-want) <= within*math.Max(1, math.Abs(want)), "%s = %v, want %g", what, got, want)
}

// state is all that a workspace holds, to compare before and after.
func (c *client) state(workspace string) string {
	c.t.Helper()
	all := c.do("entity.list", fmt.Sprintf(`{"workspace_id":%q,"limit":1000}`, workspace))
	status := c.do("workspace.status", fmt.Sprintf(`{"workspace_id":%q}`, workspace))
	return fmt.Sprint(all, status)
}

// box makes a box.
func (c *client) box(id string, at, size [3]float64) {
	c.t.Helper()
	c.do("solid.primitive", fmt.Sprintf(`{"entity_id":%q,"primitive_type":"box","position":[%g,%g,%g],"width":%g,"depth":%g,"height":%g}`,
		id, at[0], at[1], at[2], size[0], size[1], size[2]))
}
