package acp

import (
	"flag"
	"testing"

	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

var anew = flag.Bool("update", false, "write the wires of the real agents anew")

func newRealDesk(t *testing.T, agent func(*testing.T, *model.Server) fleet.Agent) *desk {
	t.Helper()
	m := serveModel(t)
	return newDesk(t, agent(t, m), t.TempDir(), m, recorder(t))
}

// TestTheRecordOfRealAgentsIsTrue has each approved, denied with a reason, cancelled,
// killed while it waits and while it works, ended by its time limit, and taken up again.
// What the record says of it is what its wire shows. With -update the wires are kept.
func TestTheRecordOfRealAgentsIsTrue(t *testing.T) {
	for name, agent := range realAgents() {
		t.Run(name, func(t *testing.T) {
			d := newRealDesk(t, agent)
			var begins []int
			for _, sc := range scenarios() {
				begins = append(begins, d.run(t, sc, nil))
			}
			expect.Of(d.eng.Audit.Reconcile(t.Context(), d.by.Tenant))(t)
			if *anew && !t.Failed() {
				d.keep(name, begins)
			}
		})
	}
}
