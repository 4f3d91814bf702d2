package acp

import (
	"cmp"
	"fmt"
	"slices"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
)

// served reports whether we answer a method of the agent.
func served(method string) bool {
	return slices.Contains([]string{
		acp.ClientMethodSessionRequestPermission, askPerson, acp.ClientMethodFsReadTextFile, acp.ClientMethodFsWriteTextFile,
		acp.ClientMethodTerminalCreate, acp.ClientMethodTerminalOutput, acp.ClientMethodTerminalWaitForExit,
		acp.ClientMethodTerminalKill, acp.ClientMethodTerminalRelease,
	}, method)
}

// serve answers a request of the agent, on the session's own goroutine. It
// does not wait for anything.
func (s *session) serve(r *jsonrpc.Request) {
	t := s.turn.Load()
	if s.replaying.Load() {
		t = nil
	}
	switch r.Method {
	case acp.ClientMethodTerminalOutput, acp.ClientMethodTerminalWaitForExit, acp.ClientMethodTerminalKill, acp.ClientMethodTerminalRelease:
		s.serveTerminal(r)
		return
	}
	if t == nil {
		s.a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "a request outside of a task was refused: " + r.Method + " " + core.ClipTo(string(r.Params), maxNoise)})
		if r.Method == acp.ClientMethodSessionRequestPermission {
			r.Reply(cancelled())
			return
		}
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidRequest, "no task is running"))
		return
	}
	switch r.Method {
	case acp.ClientMethodSessionRequestPermission:
		t.permission(r)
	case askPerson:
		t.elicit(r)
	case acp.ClientMethodFsReadTextFile:
		t.readFile(r)
	case acp.ClientMethodFsWriteTextFile:
		t.writeFile(r)
	default:
		t.createTerminal(r)
	}
}

func cancelled() acp.RequestPermissionResponse {
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}
}

func selected(id string) acp.RequestPermissionResponse {
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(id))}
}

// permission puts the agent's question to the judge. Only the options of one
// single call are ever chosen: an approval must not become a rule of the
// agent's own. Where there are several ways to allow it, a person takes one.
func (t *turn) permission(r *jsonrpc.Request) {
	var in struct {
		Options []struct {
			ID   string `json:"optionId"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"options"`
		Call struct {
			callUpdate
			Content core.Raw `json:"content"`
		} `json:"toolCall"`
	}
	if err := jsonrpc.Decode(r.Params, &in); err != nil || in.Call.ID == "" {
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidParams, "a permission request needs a toolCall with a toolCallId and options"))
		return
	}
	var allow, reject string
	var ways []judge.Option
	for _, o := range in.Options {
		switch {
		case o.Kind == "allow_once":
			allow = cmp.Or(allow, o.ID)
			ways = append(ways, judge.Option{ID: o.ID, Label: o.Name})
		case o.Kind == "reject_once" && reject == "":
			reject = o.ID
		}
	}
	no := cancelled() // an agent that offers no single rejection
	if reject != "" {
		no = selected(reject)
	}
	c := t.merge(in.Call.callUpdate, in.Call.Content)
	if c == nil {
		r.Reply(no)
		return
	}
	t.showDiffs(c)
	e := t.question(c)
	e.Asks = choice(c, &e, ways)
	t.ask(e, func(ans fleet.ToolAnswer) {
		switch {
		case ans.Decision == "":
			r.Reply(cancelled())
		case ans.Decision != "approve":
			if ans.Decision == "deny" {
				t.unheard(c.title, ans.Reason)
			}
			r.Reply(no)
		case allow == "":
			t.overrule(c, "the agent offers no permission for this one call, only for good")
			r.Reply(no)
		case e.Asks != nil:
			way, err := e.Asks.Chosen(ans.Content)
			if err != nil {
				t.overrule(c, "no way to do it was chosen")
				r.Reply(no)
				return
			}
			r.Reply(selected(way.ID))
		case !sameArgs(ans.Args, e.Args):
			t.overrule(c, "the protocol can't hand edited arguments to the agent, so the call was refused")
			r.Reply(no)
		default:
			r.Reply(selected(allow))
		}
	})
}

// question is a call as the judge sees it. A second question about the same
// call has an id of its own.
func (t *turn) question(c *call) fleet.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := core.ClipTo(c.id, maxGateID)
	if n := t.asked[id]; n > 0 {
		id = fmt.Sprintf("%s#%d", id, n+1)
	}
	t.asked[core.ClipTo(c.id, maxGateID)]++
	c.gates = append(c.gates, id)
	return fleet.Event{Type: "tool_request", CallID: id, Tool: c.kind, Args: c.args(), Intent: c.title, Fixed: true, Cell: t.s.cell(), Bind: t.bindWritten}
}

// cell is what holds the agent's process.
func (s *session) cell() *fleet.Cell {
	return keeper.Cell(s.pe.Proc, s.a.place.Spec, s.a.place.Options.Home)
}

// maxGateID leaves room for a number within what the fleet takes.
const maxGateID = 120

// args are what the agent has said about a call, under the same names for
// every agent.
func (c *call) args() core.Raw {
	args := map[string]any{"title": c.title}
	if len(c.input) > 0 {
		args["input"] = c.input
	}
	if len(c.locations) > 2 && c.locations.Kind() == '[' {
		args["locations"] = c.locations
	}
	if len(c.texts) > 0 {
		args["text"] = c.texts
	}
	if len(c.diffs) > 0 {
		args["diffs"] = c.diffs
	}
	data, err := core.Encode(args)
	if err != nil { // input that is no JSON for us is no argument that anybody can judge
		return core.MustEncode(map[string]string{"title": c.title, "unreadable": err.Error()})
	}
	return data
}

// sameArgs reports whether two arguments are the same.
func sameArgs(a, b core.Raw) bool {
	x, err := core.Canonical(a)
	y, bad := core.Canonical(b)
	return err == nil && bad == nil && string(x) == string(y)
}

// overrule turns an approval that can't be carried out into a denial.
func (t *turn) overrule(c *call, why string) {
	t.mu.Lock()
	t.decided("deny", why)
	title := c.title
	t.mu.Unlock()
	t.unheard(title, why)
	t.emit(fleet.Event{Type: "log", Level: "WARN", Text: "refused although it was approved: " + title + ": " + why})
}

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
