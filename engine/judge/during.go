package judge

import "strings"

// During is what was under way when something was asked that no call names: an
// agent at work, or a tool call of its, as it tells of it. It is for people: no
// approval is bound to it and no rule sees it.
type During struct {
	Agent  string `json:"agent,omitempty"`   // where several share the process
	TaskID string `json:"task_id,omitempty"` // where several are at work
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Title  string `json:"title,omitempty"`
}

// String is one line: who and on what, where that is to be said, and the call.
func (d During) String() string {
	var who, call []string
	for _, s := range []string{d.Agent, d.TaskID} {
		if s != "" {
			who = append(who, s)
		}
	}
	for _, s := range []string{d.Tool, d.Title} {
		if s != "" {
			call = append(call, s)
		}
	}
	if d.CallID != "" {
		call = append(call, "("+d.CallID+")")
	}
	if len(call) == 0 {
		call = []string{"tells of no call"}
	}
	if len(who) == 0 {
		return strings.Join(call, " ")
	}
	return strings.Join(who, ", ") + ": " + strings.Join(call, " ")
}
