package resource

import (
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/expect"
)

func TestADeletedAgentHasNoResources(t *testing.T) {
	inBubble(t, func(r *rig) {
		t := r.T
		all := []string{r.attachThing("lamp"), r.attachThing("desk")}
		for range 2 {
			r.No(r.Ledger.Update(t.Context(), alice, func(tx *audit.Tx) error { return r.Left(tx, "ada") }))
		}
		for _, id := range all {
			v, err := r.Show(t.Context(), alice.Tenant, id)
			expect.True(t, err == nil && len(v.Holders) == 0, "%s: %+v %v", id, v.Holders, err)
		}
	})
}
