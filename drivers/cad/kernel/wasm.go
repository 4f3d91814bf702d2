package kernel

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// packed is Manifold 3.5.4 in gzip, taken by the script fetch in this folder.
//
//go:embed manifold.wasm.gz
var packed []byte

// wasmSum is the SHA-256 of the one build that the import letters of host.go
// fit, unpacked.
const wasmSum = "73e3b419ad31294f6b1cc478173944e50efc4a34bfdeeff0107bdfc12975f11c"

const page = 64 << 10

// DefaultMemory bounds one Kernel at 512 MB: an assembly of a few hundred
// thousand triangles takes a tenth of it.
const DefaultMemory = 512 << 20

// Options set what an Engine may use.
type Options struct {
	// CacheDir keeps compiled code between runs: the first Open takes some
	// 10 ms instead of some 300. Empty compiles anew in every process.
	CacheDir string
	// Memory is the most that one Kernel may hold, in bytes; 0 means
	// DefaultMemory. A call that needs more kills its Kernel.
	Memory int
}

// Engine is the compiled geometry that all Kernels of a process share.
type Engine struct {
	options Options

	mu       sync.Mutex
	closed   bool
	cache    wazero.CompilationCache
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// New returns an Engine. It does no work: the first Open compiles.
func New(o Options) *Engine {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	return &Engine{options: o}
}

// ErrClosed is what Open answers after Close.
var ErrClosed = errors.New("geometry engine is closed")

// Close frees the compiled code and every Kernel still open.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return e.release(ctx)
}

// release frees whatever has been prepared.
func (e *Engine) release(ctx context.Context) error {
	var errs []error
	if e.runtime != nil {
		errs = append(errs, e.runtime.Close(ctx))
	}
	if e.cache != nil {
		errs = append(errs, e.cache.Close(ctx))
	}
	e.runtime, e.cache, e.compiled = nil, nil, nil
	return errors.Join(errs...)
}

// ready compiles on first use. A failed attempt leaves nothing behind, so that
// the next may succeed.
func (e *Engine) ready(ctx context.Context) (wazero.Runtime, wazero.CompiledModule, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, ErrClosed
	}
	if e.compiled != nil {
		return e.runtime, e.compiled, nil
	}
	if err := e.prepare(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("prepare the geometry kernel: %w", err), e.release(ctx))
	}
	return e.runtime, e.compiled, nil
}

// unpack is the module as its makers built it.
func unpack() ([]byte, error) {
	from, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack manifold.wasm: %w", err)
	}
	wasm, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("unpack manifold.wasm: %w", err)
	}
	if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) != wasmSum {
		return nil, fmt.Errorf("manifold.wasm has SHA-256 %x, expected %s", sum, wasmSum)
	}
	return wasm, nil
}

func (e *Engine) prepare(ctx context.Context) error {
	wasm, err := unpack()
	if err != nil {
		return err
	}
	config := wazero.NewRuntimeConfig().
		WithMemoryLimitPages(uint32(min(max(e.options.Memory/page, 1), 65536)))
	if e.options.CacheDir != "" {
		if e.cache, err = wazero.NewCompilationCacheWithDir(e.options.CacheDir); err != nil {
			return fmt.Errorf("open the cache of compiled code: %w", err)
		}
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	compiled, err := e.runtime.CompileModule(ctx, wasm)
	if err != nil {
		return err
	}
	if err := link(ctx, e.runtime, compiled); err != nil {
		return err
	}
	e.compiled = compiled
	return nil
}

// link offers the module the functions that it imports. One that host.go does
// not know means that the letters belong to another release.
func link(ctx context.Context, rt wazero.Runtime, compiled wazero.CompiledModule) error {
	known := imports()
	builder := rt.NewHostModuleBuilder("a")
	for _, def := range compiled.ImportedFunctions() {
		from, letter, _ := def.Import()
		fn, ok := known[letter]
		if from != "a" || !ok {
			return fmt.Errorf("manifold.wasm imports the unknown function %s.%s: its letters are not those of this release", from, letter)
		}
		params := def.ParamTypes()
		builder.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
				for i, t := range params {
					if t == api.ValueTypeI32 {
						stack[i] = uint64(uint32(stack[i])) // the upper half is noise
					}
				}
				fn(ctx.Value(instanceKey{}).(*instance), mod.Memory(), stack)
			}), params, def.ResultTypes()).
			Export(letter)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

// linear is the memory of one instance: addresses for all that it may ever
// hold, of which only what was touched takes memory. It never moves, so growing
// copies nothing, and the garbage collector does not take it for live heap.
type linear struct{ all []byte }

// Reallocate grows the memory, up to its limit.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.all)) {
		return nil
	}
	return l.all[:size]
}

// Free gives what was touched back. The addresses stay until nobody can reach
// the instance: a call that was given up may still be running in it.
func (l *linear) Free() { release(l.all) }

// heap is a memory of the Go heap, where addresses can't be had in advance.
type heap struct {
	now []byte
	max uint64
}

func (h *heap) Reallocate(size uint64) []byte {
	if size > h.max {
		return nil
	}
	h.now = append(h.now, make([]byte, size-uint64(len(h.now)))...)
	return h.now
}

func (h *heap) Free() { h.now = nil }

// allocate makes the memory of an instance, which keeps it.
func (in *instance) allocate(_, most uint64) experimental.LinearMemory {
	if all, ok := reserve(most); ok {
		l := &linear{all}
		runtime.AddCleanup(l, unreserve, all)
		in.memory = l
		return l
	}
	in.memory = &heap{max: most}
	return in.memory
}

// reserve takes addresses without memory behind them.
func reserve(size uint64) ([]byte, bool) {
	all, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	return all, err == nil // not where memory is promised strictly
}

// release gives the memory behind addresses back; reading them gives zeros.
func release(all []byte) { _ = unix.Madvise(all, unix.MADV_DONTNEED) } // an advice

func unreserve(all []byte) { _ = unix.Munmap(all) } // of addresses that were mapped, whole
