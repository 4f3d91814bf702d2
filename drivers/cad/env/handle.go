package env

import (
	"context"
	"fmt"
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
