package conformance_test

import (
	"fmt"
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

func journal(o *env.Options) { o.Journal = true }

// TestJournalsReplayOnFreeCADToo makes solids on one kernel and goes on with
// them on the other: workspaces are recipes, whatever builds them.
func TestJournalsReplayOnFreeCADToo(t *testing.T) {
	for i, from := range kernels {
		to := kernels[1-i]
		t.Run(fmt.Sprintf("%s to %s", from.name, to.name), func(t *testing.T) {
			kernels[1].need(t)
			a := start(t, from, journal)
			a.do("workspace.create", obj{"workspace_name": "w", "base_workspace_id": ""})
			a.do("workspace.switch", obj{"workspace_id": "w"})
			_, pin := a.holed()
			a.export("both.json", nil)
			a.do("file.import", obj{"file_path": "both.json", "entity_id": "copy"})
			a.do("history.undo", nil)
			a.do("history.redo", nil)
			b := start(t, to, journal)
			loaded := b.do("workspace.load", obj{"workspace_id": "w", "from": 1, "entries": a.entries})
			expect.Must(t, loaded.number("seq") == float64(len(a.entries)), "loaded %v of %d entries", loaded, len(a.entries))
			b.do("workspace.switch", obj{"workspace_id": "w"})
			a.do("workspace.unload", obj{"workspace_id": "nothing"})
			before, after := a.do("entity.list", nil).objects("entities"), b.do("entity.list", nil).objects("entities")
			expect.Must(t, len(before) == 4 && len(after) == len(before), "%d entities before, %d after", len(before), len(after))
			for i := range before {
				expect.True(t, before[i].text("hash") == after[i].text("hash") && before[i].text("entity_id") == after[i].text("entity_id"),
					"before %v, after %v", before[i], after[i])
			}
			m := b.do("measure.mass", obj{"entity_id": "pin"})
			b.near("volume on the other kernel", m.number("volume"), pin, b.relative*pin)
			o := b.do("solid.boolean", obj{"operation": "union", "entity_ids": []string{"pin", "copy_2"}})
			b.near("volume of a solid and what came by a file", o.number("volume"), pin, 1e-2*math.Abs(pin))
		})
	}
}
