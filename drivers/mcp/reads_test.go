package mcp

import (
	"context"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// calls has an agent call a tool. Where that must be asked about, it says yes and gives
// the card. It waits for the end of the call.
func (h *house) calls(t *testing.T, tool string, asks bool, always ...*judge.Always) (card judge.Approval) {
	t.Helper()
	tk, err := h.eng.Swarm.Dispatch(t.Context(), core.Caller{Tenant: lab, Name: "Sony", Kind: core.Agent}, swarm.Dispatch{
		Kind: Kind, Input: core.Raw(`{"server":"actor","tool":"` + tool + `","args":{"path":"a"}}`),
	})
	expect.No(t, err)
	expect.Must(t, (tk.ApprovalID != "") == asks, "%s: approval %q, want one: %v", tool, tk.ApprovalID, asks)
	if asks {
		card = expect.Of(h.eng.Judge.Card(t.Context(), lab, tk.ApprovalID))(t)
		h.answer(t, tool, judge.Answer{Approve: true, Reason: "fine", Always: append(always, nil)[0]})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tk, err = h.eng.Tasks.Wait(ctx, lab, tk.TaskID, "")
	expect.Must(t, err == nil && tk.Status == task.Succeeded, "%s: %+v %v", tool, tk, err)
	return card
}

func TestAToolReadsByItsAnnotationOnceItWasApproved(t *testing.T) {
	h, c := guests(t)
	expect.Of(h.eng.Tools.List(t.Context(), lab, "actor"))(t)
	card := h.calls(t, "search", true)
	if len(card.Action.Files) != 1 || !strings.Contains(card.Action.Files[0].Text, "finds words\nin notes\n") ||
		!strings.Contains(card.Action.Files[0].Text, `"readOnlyHint": true`) || len(card.Subject.Paths) != 1 {
		t.Errorf("%+v %v", card.Action.Files, card.Subject.Paths)
	}
	h.calls(t, "search", false)
	for _, tool := range []string{"read", "fetch"} { // by its name alone, and in an open world
		h.calls(t, tool, true)
		h.calls(t, tool, true, &judge.Always{For: judge.ForAgent, Expires: time.Hour, MaxUses: 1})
		h.calls(t, tool, false)
		h.calls(t, tool, true)
	}
	s := expect.Of(h.eng.Tools.Server(t.Context(), lab, "actor"))(t)
	_, r := h.ends(t, alice, "actor", "revise", "{}")
	expect.Must(t, r.Status == task.Succeeded, "%+v", r.Error)
	expect.Await(t, "the new description", func() bool { k, _ := c.tools.tool(s, "search"); return !k.reads() })
	card = h.calls(t, "search", true)
	expect.True(t, len(card.Action.Files) == 1 && strings.Contains(card.Action.Files[0].Diff, "\n finds words\n-in notes\n+in notes and mails\n"),
		"%+v", card.Action.Files)
	h.calls(t, "search", false)
	// Another command is another server, which nobody knows.
	s.Env = map[string]string{"MCP_TEST_SERVER": "1", "REQUIRED": ""}
	h.know(t, s)
	expect.Of(h.eng.Tools.List(t.Context(), lab, "actor"))(t)
	h.calls(t, "search", true)
}
