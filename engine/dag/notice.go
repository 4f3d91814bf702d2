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
		num, _, err := r.num(nameKey(NodeRef{TypeRun, run}))
		if err != nil {
			return err
		}
		h, err := r.head(num)
		if err != nil {
			return err
		}
		head := Head{TS: at, RunID: run, AgentID: h.AgentID, TaskID: h.TaskID, SessionID: h.SessionID, TraceID: h.TraceID}
		if err := d.emitAll(tx, head, notices); err != nil {
			return err
		}
	}
	return nil
}

func (d *DAG) emitAll(tx *audit.Tx, h Head, bodies []Body) error {
	events := make([]Event, 0, len(bodies))
	for _, b := range bodies {
		e, err := NewEvent(h, b)
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	_, err := d.ObserveIn(tx, events...)
	return err
}
