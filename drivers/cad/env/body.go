package env

import (
	"context"
	"fmt"

	"swarmdeck/engine/cad/model"
)

// bodies are what the kernel holds now, by the hash of their shape. Those used
// longest ago are dropped when they grow too many; what is needed again is
// built again.
type bodies struct {
	held  map[string]*body
	clock int64
	load  int
}

type body struct {
	facts model.Facts
	used  int64
	size  int
}

// heaviest is what the bodies may weigh together, in edges: some 40 MB of the
// embedded kernel.
const heaviest = 200_000

func newBodies() *bodies { return &bodies{held: map[string]*body{}} }

func (b *bodies) find(hash string) *body {
	found := b.held[hash]
	if found != nil {
		b.clock++
		found.used = b.clock
	}
	return found
}

func (b *bodies) add(hash string, f model.Facts) {
	b.clock++
	one := &body{facts: f, used: b.clock, size: 50 + f.Topology.Edges}
	b.held[hash] = one
	b.load += one.size
}

// trim drops what was used before a moment, oldest first, until the rest is
// light enough.
func (b *bodies) trim(before int64, drop func(hash string)) {
	for b.load > heaviest {
		oldest := ""
		for hash, one := range b.held {
			if one.used <= before && (oldest == "" || one.used < b.held[oldest].used) {
				oldest = hash
			}
		}
		if oldest == "" {
			return
		}
		b.load -= b.held[oldest].size
		delete(b.held, oldest)
		drop(oldest)
	}
}

// recipes finds shapes and the files that they start from.
type recipes func(hash string) (s model.Shape, blob []byte, ok bool)

// in looks into workspaces, one after the other.
func in(all ...*model.Workspace) recipes {
	return func(hash string) (model.Shape, []byte, bool) {
		for _, w := range all {
			if s, ok := w.Shape(hash); ok {
				blob, _ := w.Blob(s.Blob)
				return s, blob, true
			}
		}
		return model.Shape{}, nil, false
	}
}

// with adds shapes that no workspace has yet.
func (r recipes) with(blobs []model.Blob, shapes ...model.Shape) recipes {
	return func(hash string) (model.Shape, []byte, bool) {
		for _, s := range shapes {
			if s.Hash != hash {
				continue
			}
			for _, b := range blobs {
				if b.Hash == s.Blob {
					return s, b.Data, true
				}
			}
			return s, nil, true
		}
		return r(hash)
	}
}

// build makes sure that the kernel holds a body, and what that needs before it.
func (b *bench) build(ctx context.Context, find recipes, hash string) (model.Facts, error) {
	held, begin := b.bodies, b.bodies.clock
	err := b.use(ctx, func(ctx context.Context, k Kernel) error { return held.make(ctx, k, find, hash) })
	if err != nil {
		return model.Facts{}, err
	}
	facts := held.held[hash].facts
	held.trim(begin, b.kernel.Drop)
	return facts, nil
}

// made lets work use bodies that are built before it. An abandoned work goes on
// for a while: what it writes is to be read only after a nil error.
func (b *bench) made(ctx context.Context, find recipes, hashes []string, work func(ctx context.Context, k Kernel) error) error {
	held, begin := b.bodies, b.bodies.clock
	err := b.use(ctx, func(ctx context.Context, k Kernel) error {
		for _, hash := range hashes {
			if err := held.make(ctx, k, find, hash); err != nil {
				return err
			}
		}
		return work(ctx, k)
	})
	if err == nil {
		held.trim(begin, b.kernel.Drop)
	}
	return err
}

// make builds inputs before what is made of them, by a stack of its own, since
// recipes can be deep. A call that was abandoned has nobody who keeps the
// workspaces still for it: it looks up no further recipe.
func (b *bodies) make(ctx context.Context, k Kernel, find recipes, hash string) error {
	stack := []string{hash}
	for len(stack) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		top := stack[len(stack)-1]
		if b.find(top) != nil {
			stack = stack[:len(stack)-1]
			continue
		}
		shape, blob, ok := find(top)
		if !ok {
			return Refuse(TopologyError, "shape", top, fmt.Sprintf("the recipe of shape %.12s is not there", top), "load the workspace again")
		}
		waiting := len(stack)
		for _, input := range shape.Inputs {
			if b.find(input) == nil {
				stack = append(stack, input)
			}
		}
		if len(stack) > waiting {
			continue
		}
		facts, err := k.Build(ctx, shape, blob)
		if err != nil {
			return err
		}
		b.add(top, facts)
		stack = stack[:len(stack)-1]
	}
	return nil
}
