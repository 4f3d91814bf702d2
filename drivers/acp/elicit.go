package acp

import (
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
)

// askPerson is the name under which the protocol's own way to ask is put. It is
// unstable in the protocol; only its forms are served.
const askPerson = "elicitation/create"

// elicited is the answer to it.
type elicited struct {
	Action  string   `json:"action"` // accept, decline, cancel
	Content core.Raw `json:"content,omitempty"`
}

// elicit puts a question of the agent's to a person.
func (t *turn) elicit(r *jsonrpc.Request) {
	var in struct {
		Mode    string   `json:"mode"`
		Message string   `json:"message"`
		Schema  core.Raw `json:"requestedSchema"`
	}
	if err := jsonrpc.Decode(r.Params, &in); err != nil {
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidParams, "%v", err))
		return
	}
	q := judge.Question{Message: in.Message, Schema: in.Schema}
	args, err := q.Args()
	if err == nil && in.Mode != "form" {
		err = core.Invalid("mode", core.ClipTo(in.Mode, 64), "form: nobody is sent to an address that an agent names")
	}
	if err != nil {
		t.emit(fleet.Event{Type: "log", Level: "WARN", Text: "asks what nobody is asked: " + core.ClipTo(err.Error(), 1024)})
		r.Reply(elicited{Action: "decline"})
		return
	}
	e := t.ours(askPerson, args, in.Message, string(judge.Low))
	e.Asks = &q
	t.ask(e, func(ans fleet.ToolAnswer) {
		switch ans.Decision {
		case "approve":
			t.told(e, nil)
			r.Reply(elicited{Action: "accept", Content: ans.Content})
		case "deny":
			t.mu.Lock()
			t.decided("approve", "") // nothing that it does was denied
			t.mu.Unlock()
			r.Reply(elicited{Action: "decline"})
		default:
			r.Reply(elicited{Action: "cancel"})
		}
	})
}

// choice is the question which of several ways to allow one call a person takes; nil
// where there is nothing to choose.
func choice(c *call, e *fleet.Event, ways []judge.Option) *judge.Question {
	if len(ways) < 2 {
		return nil
	}
	return &judge.Question{Message: core.ClipTo(c.title, judge.MaxQuestion), Options: ways, Call: e.Args}
}
