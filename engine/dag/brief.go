package dag

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// maxBrief is how many bytes of a text one brief has.
const maxBrief = 1 << 10

// Brief is what an event says, in a few words. It holds text from outside.
func (e *Event) Brief() string {
	switch b := e.Body.(type) {
	case *ModelRequest:
		return b.Model + " is asked" + e.lastInput(b)
	case *ModelResponse:
		return e.answer(b)
	case *HistoryAppend:
		return e.said(b.MessageRef)
	case *ToolCall:
		return b.Tool + " " + b.CallID + " " + clipped(b.Args, maxBrief)
	case *ToolResult:
		return b.CallID + " " + string(b.Status) + " " + clipped(b.Result, maxBrief) + b.Error.brief()
	case *MCPResourceUpdated:
		return b.Server + " " + b.URI
	case *MCPListChanged:
		return b.Server
	case *PolicyActivated:
		return strings.TrimSpace(b.PolicyRef + " " + b.Notes)
	case *Interruption:
		return fmt.Sprintf("%s of %d events", b.Reason, len(b.Affects))
	case *Substitution:
		return b.Reason
	case *AgentForked:
		return b.FromBranch + " to " + b.ToBranch
	case *RunStarted:
		return b.Reason
	case *RunFinished:
		return b.Exit
	case *SnapshotMaterialized:
		return b.SnapshotRef
	case *SnapshotCreated:
		return b.ResourceRef + " " + string(b.Outcome)
	case *ResourceAttached:
		return strings.TrimSpace(b.ResourceRef + " " + string(b.Mode) + " " + b.Mount)
	case *ResourceDetached:
		return b.ResourceRef
	case *LivenessProbe:
		return b.ResourceRef + " " + string(b.Status)
	case *RestoreAttempted:
		return b.SnapshotRef + " " + string(b.Outcome)
	}
	return ""
}

// brief is a fault after what it is of.
func (e *Fault) brief() string {
	if e == nil {
		return ""
	}
	return " " + strings.TrimSpace(e.Code+" "+clipped(e.Message, maxBrief))
}

// states is a message that the event states, nil when it does not.
func (e *Event) states(id string) *Message {
	for _, n := range e.Nodes {
		if m, ok := n.Body.(*Message); ok && m.ID == id {
			return m
		}
	}
	return nil
}

// said is a message that the event states, else its id.
func (e *Event) said(id string) string {
	if m := e.states(id); m != nil {
		return m.Brief()
	}
	return id
}

// lastInput is what a model is asked about last, if the request states it.
func (e *Event) lastInput(b *ModelRequest) string {
	if n := len(b.InputRefs); n > 0 {
		if m := e.states(b.InputRefs[n-1].Message); m != nil {
			return ", " + m.Brief()
		}
	}
	return ""
}

// answer is what a model answered and what that took.
func (e *Event) answer(b *ModelResponse) string {
	text := strings.TrimSpace(b.OutputRef + " " + b.FinishReason)
	if m := e.states(b.OutputRef); m != nil {
		text = m.Short()
	}
	return strings.TrimSpace(b.Took() + " " + text)
}

// Took is how a model's answer ended, if not well, and the tokens that it took.
func (b *ModelResponse) Took() string {
	text := ""
	if u := b.Usage; u != nil {
		text = fmt.Sprintf("(%d+%d tokens)", u.PromptTokens, u.CompletionTokens)
	}
	if b.Status != "" && b.Status != CallOK {
		text += " " + string(b.Status) + b.Error.brief()
	}
	return strings.TrimSpace(text)
}

// Brief is who said what, as far as a row has room for it; a decision is as one
// reads it.
func (m *Message) Brief() string { return m.says(maxBrief) }

// Says is Brief at any length.
func (m *Message) Says() string { return m.says(math.MaxInt) }

func (m *Message) says(most int) string {
	if d, ok := m.Decision(); ok {
		return clipped(d.Brief()+", "+m.Content[0].ID, most)
	}
	return string(m.Role) + ": " + m.text(most)
}

// Text is what the parts of a message say.
func (m *Message) Text() string { return m.text(math.MaxInt) }

// Short is Text as far as a row has room for it.
func (m *Message) Short() string { return m.text(maxBrief) }

// text is what the parts say, the last of it cut when it is more than most.
func (m *Message) text(most int) string {
	var b strings.Builder
	for _, p := range m.Content {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		left := most - b.Len()
		if left <= 0 {
			break
		}
		switch p.Type {
		case "tool_use":
			b.WriteString(p.Name + " " + clipped(p.Input, left))
		case "tool_result":
			b.WriteString("result " + clipped(p.Output, left))
		case "image_url":
			b.WriteString("image " + clipped(p.URL, left))
		default:
			b.WriteString(clipped(p.Text, left))
		}
	}
	return b.String()
}

// Decided is what was decided about a tool call, as the record tells it.
type Decided struct {
	Decision   string `json:"decision"` // approve, deny, hitl
	ReasonCode string `json:"reason_code"`
	Rationale  string `json:"rationale,omitempty"`
	DecidedBy  string `json:"decided_by"`
	RuleID     string `json:"rule_id,omitempty"`
	ApprovalID string `json:"approval_id,omitempty"`
	DecisionID string `json:"decision_id,omitempty"`
	Abort      bool   `json:"abort,omitzero"`
}

// Decision reads a message that tells of one.
func (m *Message) Decision() (d Decided, ok bool) {
	if len(m.Content) != 1 || m.Content[0].Name != "decision" || m.Role != RoleSystem {
		return d, false
	}
	err := core.DecodeStored(m.Content[0].Input, &d)
	return d, err == nil && d.Decision != ""
}

// Word is the decision as one reads it.
func (d *Decided) Word() string {
	text := map[string]string{"approve": "approved", "deny": "denied", "hitl": "a person is asked"}[d.Decision]
	if text == "" {
		text = d.Decision
	}
	if d.Abort {
		text += " for good"
	}
	return text
}

// Why is who decided, and why.
func (d *Decided) Why() string {
	why := d.ReasonCode
	if d.Rationale != "" {
		why = d.Rationale
	}
	if d.Decision != "hitl" {
		return "by " + d.DecidedBy + ": " + why
	}
	return why
}

// Brief is the decision with who made it and why.
func (d *Decided) Brief() string {
	if d.Decision == "hitl" {
		return d.Word() + ": " + d.Why()
	}
	return d.Word() + " " + d.Why()
}

// shorten leaves of a moment what a row of a timeline shows: its event has
// neither JSON nor nodes and edges, and of its texts there is the beginning.
func (m *Moment) shorten() {
	e := &m.Event
	m.brief = e.Brief()
	e.raw, e.Nodes, e.Edges = nil, nil, nil
	if m.Message != nil {
		m.Message = m.Message.shortened()
	}
	switch b := e.Body.(type) {
	case *ModelRequest:
		e.Body = &ModelRequest{Model: b.Model}
	case *ModelResponse:
		b.Error = b.Error.shortened()
	case *ToolCall:
		b.Args = core.Raw(clipped(b.Args, maxBrief))
	case *ToolResult:
		b.Result, b.Error = core.Raw(clipped(b.Result, maxBrief)), b.Error.shortened()
	case *Interruption:
		b.Affects = slices.Clone(b.Affects[:min(len(b.Affects), 2)]) // one, or more
	}
}

func (e *Fault) shortened() *Fault {
	if e == nil {
		return nil
	}
	return &Fault{Code: e.Code, Message: clipped(e.Message, maxBrief)}
}

// shortened keeps the first bytes of its parts: as many as a conversation has of
// a call, so that a decision can still be read.
func (m *Message) shortened() *Message {
	s := &Message{ID: m.ID, Role: m.Role, CreatedAt: m.CreatedAt}
	for left, i := maxDone, 0; left > 0 && i < len(m.Content); i++ {
		p := m.Content[i]
		p.Text, p.URL = clipped(p.Text, left), clipped(p.URL, left)
		p.Input, p.Output = core.Raw(clipped(p.Input, left)), core.Raw(clipped(p.Output, left))
		left -= len(p.Text) + len(p.URL) + len(p.Input) + len(p.Output) + len(p.Name) + len(p.ID) + 64 // an empty one takes room too
		s.Content = append(s.Content, p)
	}
	return s
}
