package ui

import (
	"testing"

	"swarmdeck/engine/health"
)

func TestADegradedTenantIsSaidInTheHeader(t *testing.T) {
	r := newRig(t, 80, 24)
	r.lacks("degraded")
	r.change(func() {
		r.w.troubles = []health.Trouble{{Tenant: tenant, Component: "swarm", About: "session s_1", Reason: "cut short"}}
	})
	r.has(" degraded: swarm: ")
	r.change(func() { r.w.troubles = nil })
	r.lacks("degraded")
}
