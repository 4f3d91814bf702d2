package core

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// gcPercent has garbage collected when the heap is four times what lives.
	gcPercent = 300
	// heapFloor is never touched, so it costs no memory, but it counts as
	// living: small heaps have 24 MB more for garbage, large ones hardly more.
	heapFloor = 8 << 20
)

// RelaxGC collects garbage less often than is Go's custom, the first time at
// 12 MB, which a short command does not reach. GOGC in the environment wins.
func RelaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// HeapFloor has garbage collected less often still where an engine is busy:
// what lives is a few MB, and collecting takes a quarter of the processor time
// otherwise. It holds until keep is called. Making it may collect once, which
// costs a millisecond or two.
func HeapFloor() (keep func()) {
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
