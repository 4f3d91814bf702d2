package dag

import "swarmdeck/engine/audit"

// NotifyIn records notices of an MCP server (*MCPResourceUpdated,
// *MCPListChanged) in the transaction that they tell of, in each recorded run
// that goes on.
func (d *DAG) NotifyIn(tx *audit.Tx, notices ...Body) error {
	if len(notices) == 0 {
		return nil
	}
	r := reader{tx}
	live, err := r.recorded()
	if err != nil {
		return err
	}
	at := At(tx.Now())
	for _, run := range live {
		_, h, err := r.run(run)
		if err != nil {
			return err
		}
		head := Head{TS: at, RunID: run, AgentID: h.AgentID, TaskID: h.TaskID, SessionID: h.SessionID, TraceID: h.TraceID}
		events := make([]Event, len(notices))
		for i, b := range notices {
			if events[i], err = NewEvent(head, b); err != nil {
				return err
			}
		}
		if _, err := d.ObserveIn(tx, events...); err != nil {
			return err
		}
	}
	return nil
}
