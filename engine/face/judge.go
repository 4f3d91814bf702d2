package face

import (
	"fmt"
	"strings"

	"swarmdeck/engine/judge"
)

func judged() []*Face {
	return []*Face{
		Of[judge.Approval]{
			Noun: "approval", Each: true, Says: approvalSays,
			ID: "approval_id", Head: "subject.headline",
			Tool: `approval_id status gate kind=action.kind server=action.server tool=action.tool args=action.args,one agent=agent.name task_id
				trace_id headline=subject.headline intent inquiries risk reason_code rationale rule_id digest requested_by created_at deadline_at
				answered_by answered_at answer_reason void_reason
				always: the rule that an approval with always makes of it, if nothing else is asked for`,
			List:    "RISK:8 LEFT:6/1 WHAT:28*5k AGENT:8*1/2 STATUS:10/4 AGE:4/5 APPROVAL:4/20i",
			Columns: "APPROVAL:approval_id STATUS:status RISK:risk AGENT:agent.name AGE:created_at,age LEFT,right WHAT,72,exact",
			Wide:    "GATE:gate RULE:rule_id TASK:task_id DIGEST:digest BY:answered_by ANSWERED:answered_at REASON:answer_reason",
			Cells: Cells[judge.Approval]{
				"LEFT": func(a *judge.Approval, at At) string {
					if a.Status != judge.Open {
						return ""
					}
					ends, _ := a.Ends()
					return at.Left(ends)
				},
				"WHAT": func(a *judge.Approval, _ At) string { return a.Subject.Headline },
			},
		}.Face(),
		Of[judge.GateDecision]{
			Noun: "decision", ID: "decision_id", Head: "reason_code",
			List:    "TIME:8/1 DECISION:9 GATE:10/2 REASON:16*3 BY:8*1/3 TASK:4/4i ID:4ki -CONF -AGE",
			Columns: "ID:decision_id DECISION GATE:gate REASON:reason_code,32 CONF:confidence BY:decided_by,16 AGENT:agent AGE:created_at,age TASK:task_id",
			Wide:    "KIND:kind RULE:rule_id APPROVAL:approval_id DOOR:door POLICY:policy_version DIGEST:digest TRACE:trace_id TIME:created_at",
			Cells: Cells[judge.GateDecision]{
				"DECISION": func(d *judge.GateDecision, _ At) string { return d.Word() },
			},
		}.Face(),
		Of[judge.Policy]{
			Noun: "policy", ID: "policy_id", Head: "name", Says: policySays,
			List:    "STATUS:11 NAME:14*3k KIND:8/3 TESTS:14/1 JAIL:11/2 BY:14*1 AGE:4/4 POLICY:4/20i",
			Columns: "POLICY:policy_id STATUS:status KIND:kind NAME:name,24 TESTS JAIL BY:proposed_by AGE:created_at,age",
			Wide:    "FIRST:first_activated_by DIGEST:source_digest,12 VERSION:policy_version,12",
			Cells: Cells[judge.Policy]{
				"TESTS": func(p *judge.Policy, _ At) string {
					if p.Cases == 0 {
						return "no cases"
					}
					if p.TestsSummary == nil {
						return fmt.Sprintf("%d not run", p.Cases)
					}
					return fmt.Sprintf("%d of %d pass", p.TestsSummary.Passed, p.TestsSummary.Total)
				},
				"JAIL": func(p *judge.Policy, _ At) string {
					switch {
					case p.Kind != judge.KindProgram:
						return "-"
					case p.Unsandboxed:
						return "unsandboxed"
					}
					return "jailed"
				},
			},
		}.Face(),
		Of[judge.Rule]{
			Noun: "rule", Called: "grant", ID: "rule_id", Head: "rule",
			Tool: `rule_id approval_id gate kind=action.kind server=action.server tool=action.tool agent session_id owner created_at
				expires_at uses max_uses revoked
				rule: all that it lets pass, in one line`,
			Columns: "RULE:rule_id STATE USES,right LEFT,right OWNER:owner WHAT:rule,exact",
			Wide:    "GATE:gate BACKTEST EXPIRES:expires_at",
			Cells: Cells[judge.Rule]{
				"STATE": func(r *judge.Rule, at At) string { return r.State(at.Now) },
				"USES":  func(r *judge.Rule, _ At) string { return fmt.Sprintf("%d/%d", r.Uses, r.MaxUses) },
				"LEFT":  func(r *judge.Rule, at At) string { return at.Left(r.ExpiresAt) },
				"BACKTEST": func(r *judge.Rule, _ At) string {
					return fmt.Sprintf("%d of %d would change", r.Backtest.Flips, r.Backtest.Checked)
				},
			},
		}.Face(),
		Of[judge.CaseResult]{
			Columns: "CASE:name,28 LINE:line RESULT WANT GOT",
			Wide:    "RULE:rule_id RATIONALE:rationale",
			Cells: Cells[judge.CaseResult]{
				"RESULT": func(r *judge.CaseResult, _ At) string { return map[bool]string{true: "pass", false: "FAIL"}[r.Passed] },
				"WANT": func(r *judge.CaseResult, _ At) string {
					return strings.TrimSpace(r.Want.Decision + " " + r.Want.ReasonCode)
				},
				"GOT": func(r *judge.CaseResult, _ At) string { return r.Decision + " " + r.ReasonCode },
			},
		}.Face(),
		Of[judge.Flip]{
			Columns: "FROM:from TO:to COUNT:count GATE:gate WHAT:tool,16 BECAUSE:reason_code,24 FOR_EXAMPLE:examples,20",
			Wide:    "RULE:rule_id",
		}.Face(),
	}
}
