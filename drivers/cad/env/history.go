package env

import (
	"errors"

	"swarmdeck/engine/cad/model"
)

type listHistory struct {
	Limit  *int `json:"limit" is:"1 to 1000; 10 where nothing is given"`
	Offset int  `json:"offset"`
	Future bool `json:"include_future" is:"also what was undone and can be redone"`
}

func (p listHistory) check() error {
	_, err := window(p.Limit, p.Offset, 10)
	return err
}

func (c *call) listHistory(p listHistory) (any, error) {
	limit, err := window(p.Limit, p.Offset, 10)
	if err != nil {
		return nil, err
	}
	page, total := c.ws.History(limit, p.Offset, p.Future)
	return map[string]any{
		"operations": append([]model.Operation{}, page...), "total_count": total, "workspace_id": c.ws.Record().ID, "seq": c.ws.Seq(),
	}, nil
}

func (c *call) undo(none) (any, error) { return c.travel(c.ws.Undo) }
func (c *call) redo(none) (any, error) { return c.travel(c.ws.Redo) }

// travel takes one operation back, or brings it back.
func (c *call) travel(step func(model.Change) (model.Entry, error)) (any, error) {
	entry, err := step(c.signed(model.Change{}))
	if err != nil {
		err = Refused(err, OperationInvalid)
		var refused *Error
		if errors.As(err, &refused) && refused.Data.Suggestion == "" {
			refused.Data.Suggestion = "history.list with include_future tells what can be undone and redone"
		}
		return nil, err
	}
	c.entry = &entry
	return map[string]any{
		"workspace_id": c.ws.Record().ID, "seq": entry.Seq, "undoes": entry.Undoes, "redoes": entry.Redoes,
		"put": idsOf(entry.Put), "removed": append([]string{}, entry.Removed...),
	}, nil
}
