package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// saysOf is what an event says, in a few words.
func saysOf(e dag.Event) string {
	switch b := e.Body.(type) {
	case *dag.ModelRequest:
		return b.Model + " is asked" + lastInput(e, b)
	case *dag.ModelResponse:
		return answerText(e, b)
	case *dag.HistoryAppend:
		return messageText(e, b.MessageRef)
	case *dag.ToolCall:
		return b.Tool + " " + b.CallID + " " + string(b.Args)
	case *dag.ToolResult:
		text := b.CallID + " " + string(b.Status) + " " + string(b.Result)
		if b.Error != nil {
			text += " " + strings.TrimSpace(b.Error.Code+" "+b.Error.Message)
		}
		return text
	case *dag.MCPResourceUpdated:
		return b.Server + " " + b.URI
	case *dag.MCPListChanged:
		return b.Server
	case *dag.PolicyActivated:
		return strings.TrimSpace(b.PolicyRef + " " + b.Notes)
	case *dag.Interruption:
		return fmt.Sprintf("%s of %d events", b.Reason, len(b.Affects))
	case *dag.Substitution:
		return b.Reason
	case *dag.AgentForked:
		return b.FromBranch + " to " + b.ToBranch
	case *dag.RunStarted:
		return b.Reason
	case *dag.RunFinished:
		return b.Exit
	case *dag.SnapshotMaterialized:
		return b.SnapshotRef
	case *dag.SnapshotCreated:
		return b.ResourceRef + " " + string(b.Outcome)
	case *dag.ResourceAttached:
		return strings.TrimSpace(b.ResourceRef + " " + string(b.Mode) + " " + b.Mount)
	case *dag.ResourceDetached:
		return b.ResourceRef
	case *dag.LivenessProbe:
		return b.ResourceRef + " " + string(b.Status)
	case *dag.RestoreAttempted:
		return b.SnapshotRef + " " + string(b.Outcome)
	}
	return ""
}

// messageText is the text of a message that the event states, else its id.
func messageText(e dag.Event, id string) string {
	for _, n := range e.Nodes {
		m, ok := n.Body.(*dag.Message)
		if !ok || m.ID != id {
			continue
		}
		if text := decisionText(m); text != "" {
			return text
		}
		return string(m.Role) + ": " + contentText(m.Content)
	}
	return id
}

// contentText is what the parts of a message say.
func contentText(parts []dag.ContentPart) string {
	var b strings.Builder
	for _, p := range parts {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		switch p.Type {
		case "tool_use":
			b.WriteString(p.Name + " " + string(p.Input))
		case "tool_result":
			b.WriteString("result " + string(p.Output))
		case "image_url":
			b.WriteString("image " + p.URL)
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// decisionText is a decision as one reads it, "" for other messages.
func decisionText(m *dag.Message) string {
	if len(m.Content) != 1 || m.Content[0].Name != "decision" || m.Role != dag.RoleSystem {
		return ""
	}
	var d struct {
		Decision  string `json:"decision"`
		By        string `json:"decided_by"`
		Reason    string `json:"reason_code"`
		Rationale string `json:"rationale"`
		Rule      string `json:"rule_id"`
		Abort     bool   `json:"abort"`
	}
	if core.DecodeStored(m.Content[0].Input, &d) != nil {
		return ""
	}
	text := map[string]string{"approve": "approved", "deny": "denied", "hitl": "a person is asked"}[d.Decision]
	if text == "" {
		text = d.Decision
	}
	if d.Abort {
		text += " for good"
	}
	if d.Decision != "hitl" {
		text += " by " + d.By
	}
	why := d.Reason
	if d.Rationale != "" {
		why = d.Rationale
	}
	return text + ": " + why + ", " + m.Content[0].ID
}

// lastInput is what a model is asked about last, if the request states it.
func lastInput(e dag.Event, b *dag.ModelRequest) string {
	if len(b.InputRefs) == 0 || b.InputRefs[len(b.InputRefs)-1].Message == "" {
		return ""
	}
	id := b.InputRefs[len(b.InputRefs)-1].Message
	if text := messageText(e, id); text != id {
		return ", " + text
	}
	return ""
}

// answerText is what a model answered and what that took.
func answerText(e dag.Event, b *dag.ModelResponse) string {
	text := strings.TrimPrefix(messageText(e, b.OutputRef), string(dag.RoleAssistant)+": ")
	if text == b.OutputRef {
		text = strings.TrimSpace(text + " " + b.FinishReason)
	}
	if b.Status != "" && b.Status != dag.CallOK {
		text = strings.TrimSpace(string(b.Status) + " " + text)
		if b.Error != nil {
			text += " " + strings.TrimSpace(b.Error.Code+" "+b.Error.Message)
		}
	}
	if u := b.Usage; u != nil {
		text = fmt.Sprintf("(%d+%d tokens) %s", u.PromptTokens, u.CompletionTokens, text)
	}
	return text
}
