package kernel

import (
	"runtime"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

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
