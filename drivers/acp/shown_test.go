package acp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"swarmdeck/engine/fleet"
)

// shown is what a wire shows of one task. It is worked out from the messages alone, by
// other code than the driver's.
type shown struct {
	told   []string // prompts
	said   string   // by the agent, all messages
	calls  []seenCall
	stop   string // the agent's reason for the end of its last turn, "" for none
	died   bool   // its process was killed
	ended  bool   // its client ended the turn
	tokens int64
	split  fleet.Split
}

// seenCall is a tool call that asked, ran or ended.
type seenCall struct {
	id     string
	asked  bool
	answer string // allow_once, reject_once or cancelled, "" for none
	ran    bool
	end    string // completed or failed before anybody cut it off, "" for none
	output string // JSON object, "" for what is none
}

// turnUse is what a turn used, as the wire has it.
type turnUse struct {
	requests int64 // that were told one by one
	contexts int64 // sum of those that were told
	largest  int64 // context
	split    fleet.Split
}

func shows(lines []wireLine) (s shown) {
	calls, order := map[string]*seenCall{}, []string(nil)
	asks := map[string]message{} // the agent's questions, by id
	prompts := map[string]bool{}
	var use turnUse
	call := func(raw json.RawMessage) {
		var u struct {
			ID     string          `json:"toolCallId"`
			Status string          `json:"status"`
			Output json.RawMessage `json:"rawOutput"`
		}
		if json.Unmarshal(raw, &u) != nil || u.ID == "" {
			return
		}
		c := calls[u.ID]
		if c == nil {
			c = &seenCall{id: u.ID}
			calls[u.ID], order = c, append(order, u.ID)
		}
		if s.died || s.ended || c.end != "" {
			return
		}
		if len(u.Output) > 0 && u.Output[0] == '{' {
			c.output = string(u.Output)
		}
		c.ran = c.ran || u.Status == "in_progress"
		if u.Status == "completed" || u.Status == "failed" {
			c.end = u.Status
		}
	}
	for _, l := range lines {
		m := l.message
		switch {
		case l.mark == killed:
			s.died = true
		case l.mark == toAgent && m.Method == "session/prompt":
			prompts[string(m.ID)] = true
			var text []string
			for _, p := range m.Params.Prompt {
				text = append(text, p.Text)
			}
			s.told = append(s.told, strings.Join(text, "\n"))
			s.stop = ""
		case l.mark == toAgent && m.Method == "session/cancel":
			s.ended = true
		case l.mark == toAgent && m.Method == "" && asks[string(m.ID)].Method != "":
			ask := asks[string(m.ID)]
			delete(asks, string(m.ID))
			c := calls[callOf(ask.Params.ToolCall)]
			c.answer = m.Result.Outcome.Outcome
			for _, o := range ask.Params.Options {
				if o.OptionID == m.Result.Outcome.OptionID && c.answer == "selected" {
					c.answer = o.Kind
				}
			}
		case l.mark == fromAgent && m.Method == "session/request_permission":
			asks[string(m.ID)] = m
			call(m.Params.ToolCall)
			calls[callOf(m.Params.ToolCall)].asked = true
		case l.mark == fromAgent && m.Method == "session/update" && len(prompts) > 0:
			s.update(&use, m.Params.Update, call)
		case l.mark == fromAgent && m.Method == "" && prompts[string(m.ID)]:
			s.stop = m.Result.StopReason
			s.settle(&use, &m)
		}
	}
	s.settle(&use, nil)
	for _, id := range order {
		c := calls[id]
		if s.ended && (c.answer == "reject_once" || c.answer == "cancelled") {
			// As a turn is ended its questions are answered too, by no or by the word for
			// that, before or after the word of the end itself: all of it says the same.
			c.answer, c.end, c.output = "cancelled", "", ""
		}
		if c.asked || c.ran || c.end != "" {
			s.calls = append(s.calls, *c)
		}
	}
	return s
}

func callOf(raw json.RawMessage) string {
	var u struct {
		ID string `json:"toolCallId"`
	}
	_ = json.Unmarshal(raw, &u)
	return u.ID
}

func (s *shown) update(use *turnUse, raw json.RawMessage, call func(json.RawMessage)) {
	var u struct {
		Kind    string          `json:"sessionUpdate"`
		Content json.RawMessage `json:"content"`
		Used    int64           `json:"used"`
		Meta    struct {
			Usage *figure `json:"usage"`
		} `json:"_meta"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return
	}
	switch u.Kind {
	case "agent_message_chunk":
		var block struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(u.Content, &block)
		s.said += block.Text
		if f := u.Meta.Usage; f != nil {
			use.requests += max(f.Total, f.Input+f.Output)
			use.split = use.split.Plus(f.split())
		}
	case "tool_call", "tool_call_update":
		call(raw)
	case "usage_update":
		use.contexts += u.Used
		use.largest = max(use.largest, u.Used)
	}
}

// split is what a figure was of: what was cached is within the input where the total
// has no room for it besides.
func (f *figure) split() fleet.Split {
	s := fleet.Split{Input: f.Input, Output: f.Output, Cached: f.Read}
	if f.Input+f.Output+f.Read+f.Wrote <= f.Total {
		s.Input = f.Total - f.Output
	}
	return s
}

// settle counts a turn, at its end where that is not nil.
func (s *shown) settle(use *turnUse, end *message) {
	tokens, split := max(use.requests, use.largest), use.split
	if end != nil {
		quota := end.Result.Meta.Quota.Count
		switch f := end.Result.Usage; {
		case f != nil:
			tokens = max(tokens, f.Total, f.Input+f.Output)
			if split == (fleet.Split{}) {
				split = f.split()
			}
		case quota.Input+quota.Output > 0:
			tokens = max(tokens, quota.Input+quota.Output)
		case use.requests == 0:
			tokens = use.contexts // each is taken for a request
		}
	}
	s.tokens += tokens
	s.split = s.split.Plus(split)
	*use = turnUse{}
}

// status is what the record has to say of a call, cut being what it says of those that
// somebody cut off.
func (c seenCall) status(s shown, cut string) string {
	switch {
	case c.answer == "reject_once" && !s.ended:
		return "canceled"
	case c.end == "completed":
		return "ok"
	case c.end == "failed":
		return "error"
	case s.died:
		return "interrupted"
	case s.ended || s.stop == "":
		return cut
	}
	return "error" // the agent told no end of it
}

// differences lists where the record says another thing than the wire. What became of
// calls that were cut off is known to who did so.
func (s shown) differences(got story, cut string, modelSeen bool) (all []string) {
	differ := func(what string, record, wire any) {
		if !reflect.DeepEqual(record, wire) {
			all = append(all, fmt.Sprintf("%s: the record has %v, the wire %v", what, record, wire))
		}
	}
	differ("prompts", got.prompts, s.told)
	differ("answer", got.said, s.said)
	differ("calls", len(got.calls), len(s.calls))
	differ("results", got.results, len(s.calls))
	for i := range min(len(got.calls), len(s.calls)) {
		c, w := got.calls[i], s.calls[i]
		differ("call", c.id, w.id)
		differ(w.id+" status", c.status, w.status(s, cut))
		differ(w.id+" asked", c.asked, w.asked)
		if w.end != "" && w.output != "" && w.answer != "reject_once" { // what is said of a denied call is no result
			differ(w.id+" output", compact(c.output), compact(w.output))
		}
	}
	exit := "error"
	if s.stop == "end_turn" && !s.ended && !s.died || s.stop == "cancelled" && !s.ended && !s.died {
		exit = "success"
	}
	differ("exit", got.exit, exit)
	differ("lineage leads back", got.unbroken, true)
	if modelSeen { // which has what the agent does not tell of, as titles, or tells with its next turn
		if got.spent < got.known {
			differ("tokens, of which its model gave more", got.spent, got.known)
		}
		return all
	}
	differ("tokens", got.spent, s.tokens)
	differ("split", got.split, s.split)
	return all
}

func compact(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}
