package command

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/face"
	"swarmdeck/engine/op"
)

// runEvents prints the events of one run in its own columns.
func runEvents(c *call, o *op.Op, out any) (bool, error) {
	page, is := out.(core.Page[dag.Recorded])
	if !is || !o.Given("run") {
		return false, nil
	}
	// What is the same for all events of a run is left out, and what they say has the room.
	return true, c.listBy(face.Of[dag.Recorded]{
		Columns: "SEQ:Seq TIME EVENT:Event.event_id,9 KIND:Event.kind WHAT,100", // 8 digits are enough to find one by
		Wide:    "POS:Pos TS:Event.ts CORRELATION:Event.correlation_id TASK:Event.task_id TRACE:Event.trace_id",
		Cells: face.Cells[dag.Recorded]{
			"TIME": func(e *dag.Recorded, _ face.At) string { return e.Event.TS.Time().UTC().Format("15:04:05.000") },
			"WHAT": func(e *dag.Recorded, _ face.At) string { return e.Event.Brief() },
		},
	}.Face(), page)
}
