package keeper

import (
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// Run is one process of an agent, up to its end with nothing left of it.
type Run struct {
	Proc   Screened
	Mask   *secret.Mask  // hides what it was given
	Over   chan struct{} // closed when nothing of it is left
	Exit   cell.Exit     // valid after Over
	Ending bool          // it was asked to end; guarded by the agent's lock

	once sync.Once
	err  error
}

// Base is the run itself, of what a runtime has around it.
func (r *Run) Base() *Run { return r }

// Stop ends the whole process tree, once; others wait for it.
func (r *Run) Stop(g cell.Grace) error {
	r.once.Do(func() { r.err = r.Proc.Stop(g) })
	return r.err
}

// Finish ends what a process that has ended has left running. What was written is read
// for a while before and after it; drained is closed when there is no more.
func (r *Run) Finish(drained <-chan struct{}, patience, grace time.Duration) {
	core.Within(drained, patience)
	_ = r.Stop(cell.Grace{Interrupt: -1, Terminate: grace})
	core.Within(drained, patience)
}
