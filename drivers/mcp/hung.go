package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/skill"
)

// How long a server may take, unless the options say otherwise.
const (
	startTime = 30 * time.Second
	pingTime  = 5 * time.Second
)

// errUnanswered ends the wait for an answer that is overdue.
var errUnanswered = errors.New("no answer in time")

// limit is how much of its time a server has left for one call. It stands while a
// person is asked.
type limit struct {
	timer *time.Timer

	mu    sync.Mutex
	left  time.Duration // when it was started last
	since time.Time     // it was; zero while it stands
}

// limited ends a call's context with errUnanswered once the server has had its time.
func limited(ctx context.Context, left time.Duration, of *caller) (context.Context, *limit) {
	ctx, end := context.WithCancelCause(ctx)
	l := &limit{left: left, since: time.Now()}
	l.timer = time.AfterFunc(left, func() { end(errUnanswered) })
	waits := of.waits
	of.waits = func(on bool) {
		l.stand(on)
		waits(on)
	}
	return ctx, l
}

// stand lets the time stand still, or go on.
func (l *limit) stand(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && !l.since.IsZero() && l.timer.Stop():
		l.left -= time.Since(l.since)
		l.since = time.Time{}
	case !on && l.since.IsZero():
		l.since = time.Now()
		l.timer.Reset(l.left)
	}
}

func (l *limit) stop() { l.stand(true) }

// within waits for what fn returns, but not longer than ctx: a server that reads
// nothing any more holds up who writes to it, whatever their context says.
func within[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply, 1)
	go func() { // ends with the connection at the latest
		value, err := fn()
		replies <- reply{value, err}
	}()
	select {
	case r := <-replies:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-replies: // what is there counts
		return r.value, r.err
	default:
		var none T
		return none, ctx.Err()
	}
}

// unanswered is the failure of a call whose time is over. A server that answers
// nothing else either is begun anew, so that others can work.
func (l *link) unanswered(session *mcp.ClientSession, tool string, after time.Duration) error {
	state := "it still answers others"
	if !l.answers(session) {
		l.replace(session)
		state = "it answers nothing else either, and is begun anew"
	}
	return &skill.Failure{Code: "timeout", Message: fmt.Sprintf(
		"server %s gave no answer to %s within %s; %s; whether the call had an effect is not known%s", l.spec.Name, tool, after, state, l.lastWords())}
}

// answers reports whether the server answers a ping; a refusal is an answer.
func (l *link) answers(session *mcp.ClientSession) bool {
	ctx, cancel := context.WithTimeout(l.life, l.c.opt.PingTime)
	defer cancel()
	_, err := within(ctx, func() (struct{}, error) { return struct{}{}, session.Ping(ctx, nil) })
	return err == nil || errors.As(err, new(*jsonrpc.Error))
}

// replace ends a server that hangs, and the calls that are under way with it; the
// next use begins it anew.
func (l *link) replace(session *mcp.ClientSession) {
	l.mu.Lock()
	proc, newest := l.proc, l.session == session
	if newest {
		l.session, l.proc, l.list = nil, nil, nil
	}
	l.mu.Unlock()
	switch {
	case !newest: // another call has seen to it
	case proc != nil:
		_ = proc.Stop(cell.Grace{Interrupt: -1}) // follow sees the end of the connection, and clears up
	default:
		go func() { _ = session.Close() }() // it waits for calls under way
	}
}

// passOver tells the calls under way of a line that is no message, once a second at
// most; without one the next call is told of the last.
func (l *link) passOver() func(text string) {
	var lines slow
	return func(text string) {
		missed, now := lines.now()
		if !now {
			return
		}
		text = "server " + l.spec.Name + " said what is no message, which is passed over: " + line(text, 200)
		if missed > 0 {
			text += fmt.Sprintf(" (and %d more before)", missed)
		}
		of := l.whose(context.Background())
		if len(of) == 0 {
			l.mu.Lock()
			l.noise = text
			l.mu.Unlock()
		}
		of.log("WARN", text)
	}
}
