package cad_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func (w *world) send(from, to string, kind cad.MessageType, content string) (cad.AgentMessage, error) {
	return w.cad.SendMessage(w.T.Context(), alice, cad.SendMessage{From: from, To: to, Type: kind, Content: core.Raw(content)})
}

func (w *world) sent(from, to string, kind cad.MessageType, content string) cad.AgentMessage {
	w.T.Helper()
	return expect.Of(w.send(from, to, kind, content))(w.T)
}

func (w *world) messages(agent string, f core.Filter) core.Page[cad.AgentMessage] {
	w.T.Helper()
	return expect.Of(w.cad.Messages(w.T.Context(), home, agent, f))(w.T)
}

const rework = `{"request_type":"request_rework","component_id":"solid_1"}`

func TestEachMessageOfTheSeedReachesWhomItIsFor(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"ann", "bob", "cat"} {
		w.agent(id, "designer")
	}
	q := w.sent("ann", "bob", cad.Request, `{"request_type":"validate_component","component_id":"entity_123","validation_criteria":["check_dimensions"]}`)
	r := w.sent("bob", "ann", cad.Response, `{"request_id":"`+q.MessageID+`","status":"success","validation_results":{"dimensions":"pass"}}`)
	b := w.sent("cat", "broadcast", cad.Broadcast, `{"announcement":"workspace_merge_complete","merged_workspace":"main"}`)
	e := w.sent("cat", "ann", cad.ErrorNote, `{"error_code":"ROLE_VIOLATION","error_message":"no"}`)
	if got := w.messages("ann", core.Filter{}); got.Info.Total != 3 || got.Items[0].MessageID != e.MessageID || got.Items[1].MessageID != b.MessageID || got.Items[2].MessageID != r.MessageID {
		t.Errorf("%+v", got)
	}
	got := w.messages("bob", core.Filter{Kind: "request"})
	expect.True(t, len(got.Items) == 1 && !got.Items[0].Read && got.Items[0].FromAgentID == "ann" && got.Items[0].Timestamp != 0, "%+v", got)
	got = w.messages("cat", core.Filter{})
	expect.True(t, got.Info.Total == 0 && slices.Equal(b.Receivers, []string{"ann", "bob"}), "a broadcast came back: %+v, %v", got, b.Receivers)
	onBus, err := w.bus.Get(t.Context(), home, q.MessageID)
	expect.True(t, err == nil && onBus.MessageType == bus.Request && !onBus.Unanswered && onBus.ResponseID == r.MessageID && r.CorrelationID == q.CorrelationID,
		"on the bus: %+v, %v", onBus, err)
	// A request may be answered in parts.
	w.sent("bob", "ann", cad.Response, `{"request_id":"`+q.MessageID+`","status":"partial"}`)
	w.sound()
}

func TestReadMessagesAreMarkedAndStay(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.agent("bob", "designer")
	var ids []string
	for i := range 5 {
		ids = append(ids, w.sent("ann", "bob", cad.Request, fmt.Sprintf(`{"request_type":"query_status","n":%d}`, i)).MessageID)
	}
	if _, err := w.bus.Read(t.Context(), alice, "bob", 1); err != nil { // the first is read there
		t.Fatal(err)
	}
	got := w.messages("bob", core.Filter{Status: "unread"})
	expect.True(t, got.Info.Total == 4, "%+v", got.Info)
	read, err := w.cad.ReadMessages(t.Context(), alice, "bob", 2)
	expect.True(t, err == nil && len(read) == 2 && read[0].MessageID == ids[1] && read[1].MessageID == ids[2] && read[0].Read, "%+v, %v", read, err)
	left, err := w.bus.Peek(t.Context(), alice, "bob", 10)
	expect.True(t, err == nil && len(left) == 2, "%d stay in the mailbox, %v", len(left), err)
	w.again()
	expect.Is(t, w.messages("bob", core.Filter{Status: "unread"}).Info.Total, 2, "unread")
	got = w.messages("bob", core.Filter{Status: "read"})
	expect.True(t, got.Info.Total == 3, "%+v", got.Info)
	got = w.messages("bob", core.Filter{Size: 2, Page: 2})
	expect.True(t, got.Info.Total == 5 && len(got.Items) == 2 && got.Items[0].MessageID == ids[2], "%+v", got)
	read, err = w.cad.ReadMessages(t.Context(), alice, "bob", 100)
	expect.True(t, err == nil && len(read) == 2, "%+v, %v", read, err)
	read, err = w.cad.ReadMessages(t.Context(), alice, "bob", 100)
	expect.True(t, err == nil && len(read) == 0, "read twice: %+v, %v", read, err)
	w.sound()
}

func TestWhatIsNoMessageIsRefusedByField(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.agent("bob", "designer")
	w.agent("gone", "designer")
	expect.Of(w.cad.ShutdownAgent(t.Context(), alice, "gone"))(t)
	_, err := w.cad.CreateAgent(t.Context(), abbott, cad.CreateAgent{AgentID: "theirs", RoleName: "designer", WorkspaceID: "main"})
	expect.No(t, err)
	own := w.sent("ann", "bob", cad.Request, rework)
	for _, c := range []struct {
		from, to string
		kind     cad.MessageType
		content  string
		field    string
	}{
		{"ann", "bob", "shout", rework, "message_type"},
		{"", "bob", cad.Request, rework, "from_agent_id"},
		{"nobody", "bob", cad.Request, rework, "from_agent_id"},
		{"gone", "bob", cad.Request, rework, "from_agent_id"},
		{"ann", "", cad.Request, rework, "to_agent_id"},
		{"ann", "nobody", cad.Request, rework, "to_agent_id"},
		{"ann", "gone", cad.Request, rework, "to_agent_id"},
		{"ann", "ann", cad.Request, rework, "to_agent_id"},
		{"ann", "broadcast", cad.Request, rework, "to_agent_id"},
		{"ann", "bob", cad.Broadcast, `{"announcement":"status_update"}`, "to_agent_id"},
		{"ann", "bob", cad.Request, `[]`, "content"},
		{"ann", "bob", cad.Request, `{"request_type":`, "content"},
		{"ann", "bob", cad.Request, `{"request_type":"query_status","x":"` + strings.Repeat("x", 1<<20) + `"}`, "content"},
		{"ann", "bob", cad.Request, `{}`, "content.request_type"},
		{"ann", "bob", cad.Request, `{"request_type":"sing"}`, "content.request_type"},
		{"ann", "bob", cad.Request, `{"request_type":7}`, "content.request_type"},
		{"ann", "bob", cad.Response, `{"status":"success"}`, "content.request_id"},
		{"bob", "ann", cad.Response, `{"request_id":"msg_456","status":"success"}`, "content.request_id"},
		{"ann", "bob", cad.Response, `{"request_id":"` + own.MessageID + `","status":"success"}`, "content.request_id"}, // its own request
		{"bob", "ann", cad.Response, `{"request_id":"` + own.MessageID + `","status":"maybe"}`, "content.status"},
		{"ann", "broadcast", cad.Broadcast, `{"announcement":"lunch"}`, "content.announcement"},
		{"ann", "bob", cad.ErrorNote, `{"error_code":"OOPS","error_message":"x"}`, "content.error_code"},
		{"ann", "bob", cad.ErrorNote, `{"error_code":"TIMEOUT"}`, "content.error_message"},
	} {
		_, err := w.send(c.from, c.to, c.kind, c.content)
		if e := core.AsError(err); err == nil || e.Code != core.InvalidInput || e.Details["field"] != c.field {
			t.Errorf("%s to %s, %s %.50s: %v %v", c.from, c.to, c.kind, c.content, err, e.Details["field"])
		}
	}
	_, err = w.send("ann", "theirs", cad.Request, rework)
	expect.True(t, errors.Is(err, core.ErrForeign) && w.events("tenant.violation") == 1, "to another tenant: %v", err)
	_, err = w.cad.SendMessage(t.Context(), robot, cad.SendMessage{From: "ann", To: "bob", Type: cad.Request, Content: core.Raw(rework)})
	expect.True(t, code(err) == core.Denied, "in another's name: %v", err)
	expect.Is(t, code(expect.Fault(w.cad.ReadMessages(t.Context(), robot, "bob", 1))), core.Denied, "another's messages")
	got := w.messages("bob", core.Filter{})
	expect.True(t, got.Info.Total == 1, "a refusal was delivered: %+v", got)
	w.sound()
}
