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

// RelaxGC collects garbage less often than is Go's custom. What lives is a few
// MB, and collecting takes a quarter of the processor time of a busy engine
// otherwise. It holds until keep is called; GOGC in the environment wins.
func RelaxGC() (keep func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(gcPercent)
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
