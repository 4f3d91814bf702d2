package mcp

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAnAgentAsksForAGrantAndUsesIt(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			cs := h.stdio(t, sony, era, nil)
			ask := func(more map[string]any) map[string]any {
				args := map[string]any{"server": Name, "tool": "send_message", "any": "*", "expires_s": 3600, "max_uses": 1, "reason": "to report"}
				for name, value := range more {
					args[name] = value
				}
				return args
			}
			for what, c := range map[string]struct {
				args map[string]any
				want core.Code
			}{
				"for another":        {ask(map[string]any{"agent_name": "Papi"}), core.Denied},
				"in one that is not": {ask(map[string]any{"session_id": "se_1"}), core.NotFound},
				"what has no such":   {ask(map[string]any{"any": "payload"}), core.InvalidInput},
				"for too long":       {ask(map[string]any{"expires_s": 31 * 86400}), core.InvalidInput},
				"what needs none":    {ask(map[string]any{"tool": "list_agents"}), core.InvalidInput},
				"what is destroyed":  {ask(map[string]any{"tool": "delete_agent"}), core.InvalidInput},
			} {
				e := refusal(t, cs, "request_grant", c.args)
				expect.True(t, e.Code == c.want, "%s: %+v", what, e)
			}
			var asked struct {
				Approval struct {
					judge.Approval
					Agent    string `json:"agent"`
					Headline string `json:"headline"`
				} `json:"approval"`
				Message string `json:"message"`
			}
			use(t, cs, "request_grant", ask(nil), &asked)
			if a := asked.Approval; a.Status != judge.Open || a.Gate != judge.GateGrant || a.Agent != "Sony" || a.RequestedBy != "Sony" ||
				a.Headline != "let agent Sony call swarmdeck/send_message with any arguments up to 1 time within 1h of the approval" {
				t.Errorf("%+v", asked)
			}
			by := alice
			by.Name = "olga"
			expect.Of(h.eng.Judge.Answer(t.Context(), by, asked.Approval.ApprovalID, judge.Answer{Approve: true}))(t)
			use(t, cs, "send_message", map[string]any{"recipient_id": "system", "payload": map[string]any{}}, nil) // nobody is asked
			var all struct {
				Grants []judge.Rule `json:"grants"`
			}
			use(t, cs, "list_grants", map[string]any{"agent_name": "Sony"}, &all)
			if len(all.Grants) != 1 || all.Grants[0].Uses != 1 || all.Grants[0].ApprovalID != asked.Approval.ApprovalID || all.Grants[0].Owner != "olga" {
				t.Errorf("%+v", all)
			}
		})
	}
}
