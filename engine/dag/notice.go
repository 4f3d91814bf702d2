package dag

import "swarmdeck/engine/audit"

// NotifyIn records notices of an MCP server (*MCPResourceUpdated,
// *MCPListChanged) in the transaction that they tell of, in each recorded run
// that goes on.
func (d *DAG) NotifyIn(tx *audit.Tx, notices ...Body) error {
	if len(notices) == 0 {
		return nil
	}
	live, err := reader{tx}.recorded()
	for _, run := range live {
		if err != nil {
			break
		}
		err = d.Tell(tx, run, func(r *Recording) {
			h := r.head()
			h.Parent = nil // no work of the run's led to it
			for _, b := range notices {
				r.add(h, b)
			}
		})
	}
	return err
}
