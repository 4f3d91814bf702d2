package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// exchange is one request to a model with its answer.
type exchange struct {
	l       *line
	r       *http.Request
	f       format
	path    string // as it is served
	id      string
	secrets *strings.Replacer
	began   time.Time
	body    *body // of the request
	asked   sync.Once
	told    sync.Once
	name    string // of the model, valid once asked
	tell    func(fleet.Event)
	in      *capture
	out     *capture // of an answer that is no stream; nil else
	stream  *hold    // of one that is; nil else
	back    *hold    // of what is kept back of that
	a       *answer  // so far; nil before it begins
}

// exchange looks at a request; nil when it is none to a model.
func (l *line) exchange(r *http.Request, escaped string) *exchange {
	path := served(escaped)
	f, ok := formatOf(path)
	if !ok || r.Method != http.MethodPost {
		return nil
	}
	x := &exchange{
		l: l, r: r, f: f, path: path, id: l.p.nextID(), secrets: secretsOf(r), began: time.Now(),
		in: l.run.capture(maxAsked),
	}
	x.body = &body{from: r.Body, size: r.ContentLength, late: r.ContentLength < 0, saw: x.in.write, end: func(error) { x.ask() }}
	r.Body = x.body
	return x
}

// ask tells that the request is about to be complete.
func (x *exchange) ask() {
	x.asked.Do(func() {
		c := x.request()
		x.name, c.Sessions = c.Name, sessionsOf(x.r.Header, c.Params)
		x.tell = x.l.listen(fleet.Event{Type: "model_request", CallID: x.id, Model: &c})
		x.in.drop()
	})
}

// request is what is asked, as far as it can be understood, without
// credentials.
func (x *exchange) request() fleet.ModelCall {
	data, why := x.in.plain(x.r.Header.Get("Content-Encoding"))
	if why == "" {
		c, err := x.understand(data)
		if err == nil {
			return c
		}
		why = "not understood: " + core.ClipTo(err.Error(), 200)
	}
	c := fleet.ModelCall{
		Name:     modelIn(x.path),
		Messages: []dag.Spoken{{Role: "user", Content: []dag.ContentPart{{Type: "text", Text: x.in.instead(why)}}}},
	}
	blot(&c, x.secrets)
	return c
}

// answers follows an answer whose headers are there.
func (x *exchange) answers(res *http.Response) {
	x.ask() // it may have been answered before it was read
	a := newAnswer()
	x.a, a.secrets = a, x.secrets
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	encoding := res.Header.Get("Content-Encoding")
	b := &body{from: res.Body, size: res.ContentLength, late: res.ContentLength < 0, close: true}
	switch {
	case res.StatusCode >= 400:
		x.out = x.l.run.capture(small)
		b.saw = x.out.write
		b.end = func(err error) {
			if err == nil {
				data, _ := x.out.plain("")
				a.fail(fmt.Sprintf("http_%d", res.StatusCode), errorText(data, res.Status))
			}
			x.ended(a, err)
		}
	case kind == "text/event-stream" && (encoding == "" || encoding == "identity"):
		x.stream, b.late = &hold{of: x.l.run}, false // its events have ends of their own
		x.back = &hold{of: x.l.run}
		b.holds = func(size int) bool { return a.calls && !a.done && x.back.grow(size) }
		s := x.stream.events(x.piece, a.miss)
		b.saw = func(data []byte) {
			s.Write(data)
			if a.done {
				x.ended(a, nil)
			}
		}
		b.end = func(err error) {
			s.Close()
			if err == nil && !a.done && !a.blind && a.finish == "" && a.fault == "" {
				a.fail("truncated", "the stream ended before the answer did")
				a.broken = true
			}
			x.ended(a, err)
		}
	default:
		x.out = x.l.run.capture(maxWhole)
		b.saw = x.out.write
		b.end = func(err error) {
			if err == nil {
				x.whole(encoding)
			}
			x.ended(a, err)
		}
	}
	res.Body = b
}

// failed ends a request that got no answer.
func (x *exchange) failed(err error) {
	a := newAnswer()
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && x.r.Context().Err() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(x.body, maxAsked)) // nobody has read it
		a.fail("unreachable", cause(err))
		err = nil
	}
	x.ask()
	x.ended(a, err)
}

// ended tells the answer, once. An error is what broke it off.
func (x *exchange) ended(a *answer, err error) {
	x.told.Do(func() {
		c := a.call()
		c.Name, c.Took = x.name, time.Since(x.began)
		e := fleet.Event{Type: "model_response", CallID: x.id, Status: a.status(), Error: a.message, Model: &c}
		switch {
		case err == nil:
		case x.r.Context().Err() != nil || errors.Is(err, context.Canceled):
			e.Status, c.Fault, c.Gone, e.Error = "interrupted", "client_gone", true, "the agent did not wait for the end of the answer"
		default:
			e.Status, c.Fault, e.Error = "interrupted", "upstream_lost", cause(err)
		}
		blot(&c, x.secrets)
		e.Error = core.ClipTo(blotted(e.Error, x.secrets), 2048)
		if x.tell != nil {
			x.tell(e)
		}
	})
}

// close ends what nobody has.
func (x *exchange) close() {
	x.ask()
	if x.a == nil {
		x.a = newAnswer()
	}
	x.ended(x.a, context.Canceled)
	_ = x.body.from.Close()
	x.in.drop()
	x.out.drop()
	if x.stream != nil {
		x.stream.drop()
		x.back.drop()
	}
}
