package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

// finding is what is known of a kernel; Pool.mu guards it.
type finding struct {
	looked  time.Time // zero when nobody has
	why     error     // it can't be used
	version string
}

const (
	findPatience = 45 * time.Second
	findAgain    = 10 * time.Second // after it was not there: it may be installed meanwhile
)

// Kernels implements cad.Pool. It looks for those that nobody has looked for
// yet, which can take a moment; Find in the background spares that.
func (p *Pool) Kernels() []cad.Kernel {
	list := make([]cad.Kernel, 0, len(p.opt.Kernels))
	for _, k := range p.opt.Kernels {
		p.mu.Lock()
		known := *p.found[k.Name]
		p.mu.Unlock()
		out := cad.Kernel{Name: k.Name, Version: known.version}
		if known.looked.IsZero() {
			known.why = p.look(context.Background(), k)
		}
		if known.why != nil {
			out.Why = known.why.Error()
		}
		list = append(list, out)
	}
	return list
}

// find reports a kernel that nobody knows or that can't be used.
func (p *Pool) find(ctx context.Context, name string) error {
	names := make([]string, 0, len(p.opt.Kernels))
	for _, k := range p.opt.Kernels {
		if k.Name != name {
			names = append(names, k.Name)
			continue
		}
		p.mu.Lock()
		known := *p.found[name]
		p.mu.Unlock()
		if known.looked.IsZero() || known.why != nil && time.Since(known.looked) > findAgain {
			known.why = p.look(ctx, k)
		}
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("look for kernel %s: %w", name, err)
		}
		if known.why != nil {
			return core.Errorf(core.Unavailable, "kernel %s can't be used here: %v", name, known.why).With("field", "kernel")
		}
		return nil
	}
	return core.Invalid("kernel", name, strings.Join(names, " or "))
}

// look looks for a kernel and remembers the answer, unless ctx ended it.
func (p *Pool) look(ctx context.Context, k Kernel) error {
	var why error
	if k.Find != nil {
		ctx, stop := context.WithTimeoutCause(ctx, findPatience, errors.New("no answer within 45 s"))
		defer stop()
		if why = k.Find(ctx); errors.Is(why, context.Canceled) {
			return why
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.found[k.Name]
	f.looked, f.why = time.Now(), why
	return why
}

// learn remembers the version that a kernel told of itself.
func (p *Pool) learn(name, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found[name].version = version
}
