package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/table"
)

// instanceKey finds the running instance in the context of a host call.
type instanceKey struct{}

// instance is one module with the functions that it registered while starting.
type instance struct {
	module  api.Module
	malloc  api.Function
	free    api.Function
	memory  experimental.LinearMemory
	scratch uint32 // room for structures passed by pointer

	classes   map[uint32]*class  // by raw type
	functions map[string]*invoke // "name" or "Class.name"; constructors "Class/arguments"
	types     map[uint32]wire    // by raw type
	callers   []caller
	values    values

	problem error // why it is dead
}

// class is a C++ class that can be held by a pointer.
type class struct {
	name       string
	destructor uint32
}

// invoke is one callable entry of the function table.
type invoke struct {
	index, context  uint32
	params, results []api.ValueType
	fn              api.Function
}

const scratchSize = 256

// start instantiates the module and lets it register its functions.
func start(ctx context.Context, rt wazero.Runtime, compiled wazero.CompiledModule) (*instance, error) {
	in := &instance{
		classes: map[uint32]*class{}, functions: map[string]*invoke{},
		types: map[uint32]wire{},
	}
	in.values.reset()
	ctx = context.WithValue(ctx, instanceKey{}, in)
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(in.allocate))
	module, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("instantiate: %w", err)
	}
	in.module, in.malloc, in.free = module, module.ExportedFunction("M"), module.ExportedFunction("N")
	constructors := module.ExportedFunction("J")
	if constructors == nil || in.malloc == nil || in.free == nil {
		return nil, errors.Join(errors.New("manifold.wasm lacks an export J, M or N"), module.Close(ctx))
	}
	if _, err := constructors.Call(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("register functions: %w", err), module.Close(ctx))
	}
	if in.scratch, err = in.alloc(ctx, scratchSize); err != nil {
		return nil, errors.Join(err, module.Close(ctx))
	}
	return in, nil
}

// signature turns embind's letters, the result first, into value types.
func signature(letters string) (params, results []api.ValueType, err error) {
	for i, letter := range letters {
		var t api.ValueType
		switch letter {
		case 'v':
			continue
		case 'i', 'p':
			t = api.ValueTypeI32
		case 'j':
			t = api.ValueTypeI64
		case 'f':
			t = api.ValueTypeF32
		case 'd':
			t = api.ValueTypeF64
		default:
			return nil, nil, fmt.Errorf("signature %q has the unknown letter %q", letters, letter)
		}
		if i == 0 {
			results = append(results, t)
		} else {
			params = append(params, t)
		}
	}
	return params, results, nil
}

// call runs a registered function. Whatever goes wrong inside kills the
// instance, whose memory may be half changed.
func (in *instance) call(ctx context.Context, name string, args ...uint64) (uint64, error) {
	f, ok := in.functions[name]
	if !ok {
		return 0, fmt.Errorf("geometry kernel has no function %s", name)
	}
	if in.problem != nil {
		return 0, in.dead()
	}
	if len(args)+1 != len(f.params) {
		return 0, fmt.Errorf("geometry function %s takes %d arguments, not %d", name, len(f.params)-1, len(args))
	}
	if f.fn == nil {
		f.fn = table.LookupFunction(in.module, 0, f.index, f.params, f.results)
	}
	out, err := in.run(ctx, f.fn, slices.Insert(args, 0, uint64(f.context))...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// run calls into the module and records a failure.
func (in *instance) run(ctx context.Context, fn api.Function, args ...uint64) (uint64, error) {
	if in.problem != nil {
		return 0, in.dead()
	}
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	out, err := fn.Call(context.WithValue(ctx, instanceKey{}, in), args...)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		in.problem = err
		in.module.Close(context.WithoutCancel(ctx))
		return 0, in.dead()
	}
	if len(out) == 0 {
		return 0, nil
	}
	return out[0], nil
}

// ErrDead is in the chain of every error of a Kernel that failed inside the
// geometry: discard it, open another and repeat its operations.
var ErrDead = errors.New("geometry kernel died")

func (in *instance) dead() error { return fmt.Errorf("%w: %w", ErrDead, in.problem) }

func (in *instance) alloc(ctx context.Context, size uint32) (uint32, error) {
	p, err := in.run(ctx, in.malloc, uint64(size))
	if err == nil && uint32(p) == 0 {
		in.problem = fmt.Errorf("no memory for %d bytes", size)
		err = in.dead()
	}
	return uint32(p), err
}

// doubles writes up to 32 numbers where a structure of them is expected, and
// answers the pointer; it holds until the next call of doubles.
func (in *instance) doubles(offset uint32, numbers ...float64) uint64 {
	at := in.scratch + 8*offset
	for i, x := range numbers {
		in.module.Memory().WriteFloat64Le(at+8*uint32(i), x)
	}
	return uint64(at)
}

// takeDoubles reads a structure of doubles that a call returned, and frees it.
func (in *instance) takeDoubles(ctx context.Context, at uint64, into []float64) error {
	for i := range into {
		x, ok := in.module.Memory().ReadFloat64Le(uint32(at) + 8*uint32(i))
		if !ok {
			return fmt.Errorf("structure at %d lies outside the memory", at)
		}
		into[i] = x
	}
	return in.release(ctx, at)
}

// release frees memory, also when the context has ended.
func (in *instance) release(ctx context.Context, at uint64) error {
	_, err := in.run(context.WithoutCancel(ctx), in.free, at)
	return err
}

// takeString reads a string that a call returned, and frees it.
func (in *instance) takeString(ctx context.Context, at uint64) (string, error) {
	length, ok := in.module.Memory().ReadUint32Le(uint32(at))
	text, also := in.module.Memory().Read(uint32(at)+4, min(length, 4096))
	if !ok || !also {
		return "", fmt.Errorf("string at %d lies outside the memory", at)
	}
	out := string(text) // before it is freed and written over
	return out, in.release(ctx, at)
}

// discard destroys an object of a class, also when the context has ended. On a dead instance there is nothing
// left to free.
func (in *instance) discard(ctx context.Context, className string, object uint32) error {
	if in.problem != nil || object == 0 {
		return nil
	}
	f := in.functions["~"+className]
	if f == nil {
		return fmt.Errorf("geometry kernel has no class %s", className)
	}
	if f.fn == nil {
		f.fn = table.LookupFunction(in.module, 0, f.index, f.params, f.results)
	}
	_, err := in.run(context.WithoutCancel(ctx), f.fn, uint64(object))
	return err
}
