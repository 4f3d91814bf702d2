package main

import (
	"context"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
)

// places asks the engine what file rules say of a run. Without an engine there
// is no run: a rule that hides something must not be missed.
func (h *house) places(w cell.Whose) (files.Places, error) {
	eng := h.running.Load()
	if eng == nil {
		return files.Places{}, core.Errorf(core.Unavailable, "the engine is not open")
	}
	return eng.PlacesOf(context.Background(), w.Tenant, w.Role, w.Agent, w.Task)
}
