package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

// finding is a kernel and what is known of it; Pool.mu guards that.
type finding struct {
	Kernel

	looked  time.Time // zero when nobody has
	why     error     // it can't be used
	version string
}

const (
	findPatience = 45 * time.Second
	findAgain    = 10 * time.Second // after it was not there: it may be installed meanwhile
)

// Kernels implements cad.Pool. It looks for those that nobody has looked for
// yet, which can take a moment.
func (p *Pool) Kernels() []cad.Kernel {
	return core.Map(p.kernels, func(f *finding) cad.Kernel {
		version, why := p.look(context.Background(), f, false)
		out := cad.Kernel{Name: f.Name, Version: version}
		if why != nil {
			out.Why = why.Error()
		}
		return out
	})
}

// kernel is the one of a name, nil for none.
func (p *Pool) kernel(name string) *finding {
	i := slices.IndexFunc(p.kernels, func(f *finding) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return p.kernels[i]
}

// find reports a kernel that nobody knows or that can't be used.
func (p *Pool) find(ctx context.Context, name string) error {
	f := p.kernel(name)
	if f == nil {
		names := core.Map(p.kernels, func(f *finding) string { return f.Name })
		return core.Invalid("kernel", name, strings.Join(names, " or "))
	}
	_, why := p.look(ctx, f, true)
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("look for kernel %s: %w", name, err)
	}
	if why != nil {
		return core.Errorf(core.Unavailable, "kernel %s can't be used here: %v", name, why).With("field", "kernel")
	}
	return nil
}

// look says what version a kernel is of, and why it can't be used. It looks for one that nobody
// has looked for yet, or with again that was not there a while ago, and remembers the
// answer, unless ctx ended it.
func (p *Pool) look(ctx context.Context, f *finding, again bool) (version string, why error) {
	p.mu.Lock()
	known := *f
	p.mu.Unlock()
	if !known.looked.IsZero() && !(again && known.why != nil && time.Since(known.looked) > findAgain) {
		return known.version, known.why
	}
	if f.Find != nil {
		ctx, stop := context.WithTimeoutCause(ctx, findPatience, errors.New("no answer within 45 s"))
		defer stop()
		if why = f.Find(ctx); errors.Is(why, context.Canceled) {
			return known.version, why
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.looked, f.why = time.Now(), why
	return f.version, why
}
