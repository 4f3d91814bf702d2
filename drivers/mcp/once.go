package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
)

// CallIDKey is the member of a request's _meta by which a client names its
// call: the same name again, with the same tool and arguments, is the same
// call, and gets its result without a second decision or effect.
const CallIDKey = "swarmdeck/call_id"

// once knows the calls that were named, for a while.
type once struct {
	mu    sync.Mutex
	calls map[string]*namedCall
	n     uint64
	boot  string // makes the ids of calls without a name unique
}

type namedCall struct {
	digest string
	done   chan struct{}
	result *mcp.CallToolResult
	err    error
	ended  time.Time
}

// Bounds of the calls that are remembered.
const (
	keepCalls   = 4096
	keepCallFor = 10 * time.Minute
)

func (o *once) init() { o.calls, o.boot = map[string]*namedCall{}, core.NewTrace(nil)[:12] }

// work carries out a call of some id. It reports whether the call was allowed,
// and so may have done something.
type work func(ctx context.Context, callID string) (r *mcp.CallToolResult, allowed bool, err error)

// do carries out a call, unless it was carried out before. A call that is
// given up before it was allowed may be made again.
func (o *once) do(ctx context.Context, id Identity, r *mcp.CallToolRequest, work work) (*mcp.CallToolResult, error) {
	name, named := r.Params.Meta[CallIDKey]
	callID, ok := name.(string)
	if !named {
		o.mu.Lock()
		o.n++
		callID = fmt.Sprintf("%s-%d", o.boot, o.n)
		o.mu.Unlock()
		r, _, err := work(ctx, callID)
		return result(r, err)
	}
	if !ok || !isCallID(callID) {
		return failure(core.Invalid("_meta."+CallIDKey, clean(clip(fmt.Sprint(name))), "1-128 printable characters")), nil
	}
	digest, err := core.Digest(struct {
		Tool string
		Args core.Raw
	}{r.Params.Name, core.Raw(r.Params.Arguments)})
	if err != nil {
		return failure(err), nil
	}
	key := id.String() + "\x00" + callID
	o.mu.Lock()
	known := o.calls[key]
	if known == nil {
		o.forget()
		if len(o.calls) >= keepCalls {
			o.mu.Unlock()
			return failure(core.Errorf(core.Unavailable, "%d named calls are remembered: wait, or name fewer", keepCalls)), nil
		}
		known = &namedCall{digest: digest, done: make(chan struct{})}
		o.calls[key] = known
		o.mu.Unlock()
		var allowed bool
		known.result, allowed, known.err = work(ctx, callID)
		o.mu.Lock()
		known.ended = time.Now()
		if ctx.Err() != nil && !allowed {
			delete(o.calls, key)
		}
		o.mu.Unlock()
		close(known.done)
		return result(known.result, known.err)
	}
	o.mu.Unlock()
	if known.digest != digest {
		return failure(core.Errorf(core.Conflict, "call %s: its name was used for another tool or other arguments", callID).With("field", "_meta."+CallIDKey)), nil
	}
	select {
	case <-known.done:
		return result(known.result, known.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// result gives a caller a result of its own: what sends it writes into it.
func result(r *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if err != nil {
		return nil, err
	}
	own := *r
	return &own, nil
}

// forget drops what has been over for long; o.mu is held.
func (o *once) forget() {
	for key, c := range o.calls {
		if !c.ended.IsZero() && time.Since(c.ended) > keepCallFor {
			delete(o.calls, key)
		}
	}
}

func isCallID(s string) bool { return s != "" && len(s) <= 128 && core.Printable(s) }
