package audit

import "swarmdeck/engine/core"

// Notify tells the watchers of a change that is not in the store, such as
// running work that acknowledged a stop. It may be called from any goroutine.
func (l *Ledger) Notify(c core.Change) {
	if l.opt.OnChange != nil {
		l.opt.OnChange(c)
	}
}
