package cad

import (
	"maps"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/store"
)

// answersOf are the answers of an assignment's operations, by their ids.
func answersOf(a *TaskAssignment) (map[string]core.Raw, error) {
	var r struct {
		Operations map[string]core.Raw `json:"operations"`
	}
	if len(a.Result) == 0 {
		return nil, nil
	}
	err := core.DecodeStored(a.Result, &r)
	return r.Operations, err
}

// answersFor are the answers of other assignments that the operations of one
// refer to: task, then operation, workspace_id or agent_id.
func (c *Controller) answersFor(tx store.Tx, number uint64, a *TaskAssignment) (map[string]map[string]core.Raw, error) {
	wanted := map[string][]string{}
	for _, s := range slices.Concat(a.Operations, a.ReworkOperations) {
		for _, u := range mapping.Uses(s.Params, "params") {
			if u.Ref != nil && u.Ref.Root == rootTasks && len(u.Ref.Path) > 1 {
				task := u.Ref.Path[0].Key
				wanted[task] = append(wanted[task], u.Ref.Path[1].Key)
			}
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	all, err := c.loadAssignments(tx, number)
	if err != nil {
		return nil, err
	}
	given := map[string]map[string]core.Raw{}
	for _, o := range all {
		names := wanted[o.TaskID]
		if len(names) == 0 {
			continue
		}
		if err := o.complete(tx); err != nil {
			return nil, err
		}
		answers, err := answersOf(o)
		if err != nil {
			return nil, err
		}
		known := map[string]core.Raw{refWorkspace: core.MustEncode(o.WorkspaceID), refAgent: core.MustEncode(o.AgentID)}
		maps.Copy(known, answers)
		given[o.TaskID] = map[string]core.Raw{}
		for _, name := range names {
			if value, ok := known[name]; ok {
				given[o.TaskID][name] = value
			}
		}
	}
	return given, nil
}
