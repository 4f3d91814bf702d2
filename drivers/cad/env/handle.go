package env

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// handle carries out one request and returns the line of its answer, nil for a
// notification.
func (c *conn) handle(ctx context.Context, r request) []byte {
	begin := time.Now()
	a := answer{ID: r.id}
	if r.wrong != nil {
		a.Error = r.wrong
		return a.encode()
	}
	if r.method == "$/cancelRequest" {
		r.method = "system.cancel"
	}
	m, known := c.env.methods[r.method]
	if !known {
		a.Error = c.env.unknown(r.method)
	} else {
		data, entry, err := c.perform(ctx, r, m)
		if err != nil {
			a.Error = refusal(err)
		} else {
			a.Result = &result{Status: "success", Data: data, Metadata: metadata{
				Operation: r.method, Millis: time.Since(begin).Milliseconds(),
			}}
			if c.env.options.Journal && entry != nil {
				a.Result.Metadata.Entry = entry
			}
		}
	}
	if r.id == nil {
		return nil
	}
	return a.encode()
}

// unknown refuses a method that there is not.
func (e *Env) unknown(name string) *Error {
	suggestion := "system.hello lists the methods"
	if near := nearest(name, e.methodNames()); near != "" {
		suggestion = "did you mean " + near + "? " + suggestion
	}
	switch name {
	case "solid.loft", "solid.sweep", "file.delete", "scenario.run":
		suggestion = "no kernel of this environment does it; " + suggestion
	}
	return Refuse(InvalidCommand, "method", name, fmt.Sprintf("there is no method %v", shown(name)), suggestion)
}

// perform lets a method run. Methods of system touch nothing of the
// workspaces, so they need not wait for others.
func (c *conn) perform(ctx context.Context, r request, m method) (data, entry any, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	params := r.params
	if len(params) > model.MaxParams && r.method != "workspace.load" {
		return nil, nil, Invalid("params", fmt.Sprintf("%d bytes", len(params)), fmt.Sprintf("at most %d bytes", model.MaxParams))
	}
	if m.fixed != "" {
		params = fix(params, m.fixed)
	}
	one := &call{env: c.env, conn: c, ctx: ctx, method: r.method, params: params, cancel: cancel, release: func() {}}
	defer func() { one.release() }()
	if m.canonical != "" {
		one.method = m.canonical
	}
	if strings.HasPrefix(r.method, "system.") {
		data, err = m.run(one, params)
		return data, nil, err
	}
	if c.begin(one, r.id) {
		return nil, nil, Refuse(OperationInvalid, "", nil, "the request was cancelled before its turn", "send it again")
	}
	defer c.finish()
	stop := one.stage.report(c, r.id)
	defer stop()
	c.env.mu.Lock()
	defer c.env.mu.Unlock()
	start := time.Now()
	data, err = m.run(one, params)
	c.env.count(one, time.Since(start), err)
	if err != nil || one.entry == nil {
		return data, nil, err
	}
	return data, one.entry, nil
}

// fix adds the params that an alias stands for.
func fix(params core.Raw, fixed string) core.Raw {
	text := strings.TrimSpace(string(params))
	switch {
	case text == "":
		return core.Raw("{" + fixed + "}")
	case !strings.HasPrefix(text, "{"):
		return params
	}
	rest := strings.TrimSpace(text[1:])
	if rest != "}" {
		fixed += ","
	}
	return core.Raw("{" + fixed + rest)
}

// begin makes a call the one that a cancel means, and says whether one came
// before.
func (c *conn) begin(one *call, id core.Raw) (cancelled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.id = string(id)
	if _, gone := c.gone[one.id]; gone && id != nil {
		return true
	}
	c.now = one
	return false
}

func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = nil
}

// limit gives a call its deadline, from now on.
func (c *conn) limit(one *call) {
	ctx, release := context.WithTimeoutCause(one.ctx, time.Duration(one.DeadlineMS)*time.Millisecond, errDeadline)
	one.ctx, one.release = ctx, release
}

// stage is how far a long operation has come.
type stage struct {
	mu      sync.Mutex
	percent float64
	name    string
}

// at notes how far the operation has come.
func (s *stage) at(percent float64, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.percent, s.name = percent, name
}

// report sends $/progress while an operation lasts. Its answer comes after the
// last of them.
func (s *stage) report(c *conn, id core.Raw) (stop func()) {
	if id == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	timer := time.AfterFunc(progressAfter, func() {
		defer close(ended)
		every := time.NewTicker(progressEvery)
		defer every.Stop()
		for {
			s.mu.Lock()
			p := progress{ID: id, Percent: s.percent, Stage: s.name}
			s.mu.Unlock()
			c.send(core.MustEncode(notification{Version: "2.0", Method: "$/progress", Params: p}))
			select {
			case <-end:
				return
			case <-every.C:
			}
		}
	})
	return func() {
		if close(end); !timer.Stop() {
			<-ended
		}
	}
}

type notification struct {
	Version string   `json:"jsonrpc"`
	Method  string   `json:"method"`
	Params  progress `json:"params"`
}

type progress struct {
	ID      core.Raw `json:"id"`
	Percent float64  `json:"percent"` // 0 to 100
	Stage   string   `json:"stage"`
}

// request is one JSON-RPC 2.0 request or notification.
type request struct {
	id     core.Raw // nil of a notification
	method string
	params core.Raw
	wrong  *Error // why it is no request
}

// answer is one JSON-RPC 2.0 response.
type answer struct {
	Version string   `json:"jsonrpc"`
	ID      core.Raw `json:"id"`
	Result  *result  `json:"result,omitzero"`
	Error   *Error   `json:"error,omitzero"`
}

// result is what a method that succeeded answers.
type result struct {
	Status   string   `json:"status"` // success
	Data     any      `json:"data"`
	Metadata metadata `json:"metadata"`
}

type metadata struct {
	Operation string `json:"operation_type"`
	Millis    int64  `json:"execution_time_ms"`
	Entry     any    `json:"entry,omitempty"`
}

const (
	maxBatch = 1000
	maxID    = 256 // bytes
)

// read takes a line apart: one request, or the requests of a batch.
func read(line []byte) (all []request, batch bool) {
	value := core.Raw(bytes.TrimSpace(line))
	if !value.IsValid() {
		return []request{{wrong: Refuse(ParseError, "", nil, "the line is not one valid JSON value", "send one JSON-RPC 2.0 message to a line, in UTF-8, with no name twice in an object")}}, false
	}
	if value.Kind() != '[' {
		return []request{readOne(value)}, false
	}
	var list []core.Raw
	if err := core.Decode(value, &list); err != nil || len(list) == 0 || len(list) > maxBatch {
		return []request{{wrong: Refuse(InvalidRequest, "", len(list), "a batch of this length is not answered", "send 1 to 1000 requests in an array")}}, false
	}
	return core.Map(list, readOne), true
}

// readOne reads a request. Its id is told as far as it can be made out, so that
// the sender learns which one was wrong.
func readOne(value core.Raw) request {
	var r request
	if value.Kind() != '{' {
		r.wrong = Refuse(InvalidRequest, "", value, "a request is an object", `send {"jsonrpc":"2.0","id":…,"method":…,"params":{…}}`)
		return r
	}
	var m struct {
		Version core.Raw `json:"jsonrpc"`
		ID      core.Raw `json:"id"`
		Method  core.Raw `json:"method"`
		Params  core.Raw `json:"params"`
	}
	if err := core.DecodeStored(value, &m); err != nil {
		r.wrong = Refuse(InvalidRequest, "", nil, "the request can't be read: "+err.Error(), "give each name once")
		return r
	}
	if len(m.ID) > 0 {
		if kind := m.ID.Kind(); kind != '"' && kind != '0' && kind != 'n' || len(m.ID) > maxID {
			r.wrong = Refuse(InvalidRequest, "id", m.ID, "the id is no id", "give a text, a number or null of at most 256 bytes")
			return r
		}
		r.id = slices.Clone(m.ID)
	}
	switch {
	case string(m.Version) != `"2.0"`:
		r.wrong = Refuse(InvalidRequest, "jsonrpc", orNil(m.Version), "this is no JSON-RPC 2.0", `give "jsonrpc":"2.0"`)
	case m.Method.Kind() != '"' || core.Decode(m.Method, &r.method) != nil:
		r.wrong = Refuse(InvalidRequest, "method", orNil(m.Method), "the method has no name", "give the name of a method as text; system.hello lists them")
	case len(m.Params) > 0 && m.Params.Kind() != '{' && m.Params.Kind() != '[' && m.Params.Kind() != 'n':
		r.wrong = Refuse(InvalidRequest, "params", m.Params, "params is neither an object nor a list", "give an object of named parameters")
	case m.Params.Kind() != 'n':
		r.params = m.Params
	}
	return r
}

func orNil(v core.Raw) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// encode writes an answer as one line.
func (a answer) encode() []byte {
	a.Version = "2.0"
	if len(a.ID) == 0 {
		a.ID = core.Raw("null")
	}
	line, err := core.Encode(a)
	if err != nil { // a kernel's number that JSON has no form for
		a.Result, a.Error = nil, internal(err)
		return core.MustEncode(a)
	}
	return line
}
