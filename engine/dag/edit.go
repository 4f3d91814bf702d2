package dag

import (
	"context"
	"fmt"

	"swarmdeck/engine/core"
)

// Edited is an event of the conversation as somebody wants it to have been.
type Edited struct {
	Original string        `json:"original_event"`
	Kind     Kind          `json:"kind"`           // history_append, tool_call or tool_result
	Role     MessageRole   `json:"role,omitempty"` // of a message, as what it says
	Content  []ContentPart `json:"content,omitempty"`
	Call     *ToolCall     `json:"call,omitzero"`
	Result   *ToolResult   `json:"result,omitzero"`
	Reason   string        `json:"reason,omitempty"`
}

// maxEdit bounds an edit, in bytes of JSON.
const maxEdit = 256 << 10

// Edit is an event with some of its fields given anew, in a JSON object: text or
// content of a message of the conversation, args of a tool call, status, result
// and error of a tool result. Nothing is recorded.
func (d *DAG) Edit(ctx context.Context, tenant, event string, edit core.Raw) (*Edited, error) {
	if err := core.CheckObject("edit", edit, maxEdit); err != nil {
		return nil, err
	}
	out := &Edited{Original: event}
	err := d.view(ctx, tenant, "read what is edited", func(r reader) error {
		at, err := r.detail(event)
		if err != nil {
			return err
		}
		out.Kind = at.Event.Kind
		switch b := at.Event.Body.(type) {
		case *ToolCall:
			call := *b
			out.Call = &call
			return fields(edit, &struct {
				Args *core.Raw `json:"args"`
			}{&call.Args})
		case *ToolResult:
			result := *b
			out.Result = &result
			err := fields(edit, &struct {
				Status *CallStatus `json:"status"`
				Result *core.Raw   `json:"result"`
				Error  **Fault     `json:"error"`
			}{&result.Status, &result.Result, &result.Error})
			if result.Status == CallOK {
				result.Error = nil
			}
			return err
		case *HistoryAppend:
			m, err := r.message(&at.Event, b.MessageRef)
			if err != nil {
				return err
			}
			if m == nil || b.List != ListMain {
				break
			}
			text := ""
			out.Role = m.Role
			err = fields(edit, &struct {
				Text    *string        `json:"text"`
				Content *[]ContentPart `json:"content"`
			}{&text, &out.Content})
			if err == nil && text != "" {
				out.Content = append(out.Content, ContentPart{Type: "text", Text: text})
			}
			if err == nil && len(out.Content) == 0 {
				err = core.Errorf(core.InvalidInput, "edit: text or content is missing").With("field", "edit")
			}
			return err
		}
		return core.Errorf(core.InvalidInput, "edit: event %s is a %s; allowed: a message of the conversation, a tool_call, a tool_result", core.Clip(event), at.Event.Kind).With("field", "edit")
	})
	if err != nil {
		return nil, err
	}
	if _, err := out.Events(Head{TS: At(d.ledger.Clock().Now()), RunID: "edit", AgentID: "edit"}); err != nil {
		return nil, core.Errorf(core.InvalidInput, "edit: %v", err).With("field", "edit")
	}
	return out, nil
}

// fields reads an edit: members that there are none of are refused by name.
func fields(edit core.Raw, into any) error {
	if err := core.Decode(edit, into); err != nil {
		return core.Errorf(core.InvalidInput, "edit: %v", err).With("field", "edit")
	}
	return nil
}

// Events tell of the edit in a run of its own: what stands in the place of the
// original, and that it does.
func (x *Edited) Events(h Head) ([]Event, error) {
	started, err := NewEvent(h, &RunStarted{Reason: "user"})
	if err != nil {
		return nil, err
	}
	in := h
	in.Parent = &EventRef{x.Original}
	var body Body
	switch {
	case x.Call != nil:
		body = x.Call
	case x.Result != nil:
		body = x.Result
	default:
		m := NewNode(&Message{ID: h.RunID + "/1", Role: x.Role, Content: x.Content, CreatedAt: h.TS})
		in.Nodes, body = []Node{m}, &HistoryAppend{List: ListMain, MessageRef: m.ID()}
	}
	instead, err := NewEvent(in, body)
	if err != nil {
		return nil, err
	}
	told, err := NewEvent(h, &Substitution{OriginalEvent: EventRef{x.Original}, ReplacementEvent: EventRef{instead.EventID}, Reason: x.Reason})
	if err != nil {
		return nil, err
	}
	finished, err := NewEvent(h, &RunFinished{Exit: "success"})
	return []Event{started, instead, told, finished}, err
}

// EditRun is the run of the edit with which an intent forked an agent.
func EditRun(intent string) string { return "edit:" + intent }

// EditOf is the event that stands in the place of the last one that a fork goes on
// from; "" when nothing was edited.
func (d *DAG) EditOf(ctx context.Context, tenant, intent string) (string, error) {
	page, err := d.Events(ctx, tenant, Query{Run: EditRun(intent), Filter: core.Filter{Size: 4}})
	for _, e := range page.Items {
		if s, is := e.Event.Body.(*Substitution); is {
			return s.ReplacementEvent.EventID, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("look for an edit: %w", err)
	}
	return "", nil
}
