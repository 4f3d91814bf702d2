package dag

import (
	"fmt"
	"strings"
)

// Brief is what an event says, in a few words. It holds text from outside.
func (e *Event) Brief() string {
	switch b := e.Body.(type) {
	case *ModelRequest:
		return b.Model
	case *ModelResponse:
		return strings.TrimSpace(b.OutputRef + " " + b.FinishReason)
	case *HistoryAppend:
		return e.said(b.MessageRef)
	case *ToolCall:
		return b.Tool + " " + b.CallID + " " + string(b.Args)
	case *ToolResult:
		return b.CallID + " " + string(b.Status) + " " + string(b.Result)
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

// said is a message that the event states, else its id.
func (e *Event) said(id string) string {
	for _, n := range e.Nodes {
		if m, ok := n.Body.(*Message); ok && m.ID == id {
			return m.Brief()
		}
	}
	return id
}

// Brief is who said what, images and the like left out.
func (m *Message) Brief() string {
	return string(m.Role) + ": " + m.Text()
}

// Text is a message's text: what it says, thinks, asks a tool for or is given
// by one.
func (m *Message) Text() string {
	var parts []string
	for i := range m.Content {
		p := &m.Content[i]
		for _, text := range []string{p.Text, p.Name, string(p.Input), string(p.Output)} {
			if text != "" {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(parts, " ")
}
