package mcp

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// approvalTools only look: no client of this protocol answers an approval.
func approvalTools() []tool {
	return []tool{
		define("list_approvals", "List approvals", "List what waits, or waited, for a person to answer, newest first.", reads, append([]param{
			{name: "status", kind: text, about: "only of this status", enum: []string{"open", "approved", "denied", "expired", "void"}},
			{name: "agent_name", kind: text, about: "only of this agent", min: 1, max: 64},
		}, pageParams(core.DefaultPageSize)...), listApprovals),
		define("show_approval", "Show an approval", "Show one approval: what would be done, why it was asked, and how it was answered.", reads, []param{
			{name: "approval_id", kind: text, about: "id of the approval", required: true, min: 1, max: 128},
		}, showApproval),
	}
}

type approvalView struct {
	ApprovalID   string               `json:"approval_id"`
	Status       judge.ApprovalStatus `json:"status"`
	Gate         judge.Gate           `json:"gate"`
	Kind         string               `json:"kind"`
	Server       string               `json:"server,omitempty"`
	Tool         string               `json:"tool,omitempty"`
	Args         core.Raw             `json:"args,omitempty"`
	Agent        string               `json:"agent,omitempty"`
	TaskID       string               `json:"task_id,omitempty"`
	TraceID      string               `json:"trace_id"`
	Intent       string               `json:"intent"`
	Risk         judge.Risk           `json:"risk"`
	ReasonCode   string               `json:"reason_code"`
	Rationale    string               `json:"rationale,omitempty"`
	RuleID       string               `json:"rule_id,omitempty"`
	Digest       string               `json:"digest"`
	RequestedBy  string               `json:"requested_by"`
	CreatedAt    string               `json:"created_at"`
	DeadlineAt   string               `json:"deadline_at"`
	AnsweredBy   string               `json:"answered_by,omitempty"`
	AnsweredAt   string               `json:"answered_at,omitempty"`
	AnswerReason string               `json:"answer_reason,omitempty"`
	VoidReason   string               `json:"void_reason,omitempty"`
}

func viewApproval(a judge.Approval) approvalView {
	return approvalView{
		ApprovalID: a.ApprovalID, Status: a.Status, Gate: a.Gate, Kind: a.Action.Kind, Server: a.Action.Server, Tool: a.Action.Tool,
		Agent: a.Agent.Name, TaskID: a.TaskID, TraceID: a.TraceID, Intent: a.Intent, Risk: a.Risk, ReasonCode: a.ReasonCode,
		Rationale: a.Rationale, RuleID: a.RuleID, Digest: a.Digest, RequestedBy: a.RequestedBy,
		CreatedAt: stamp(a.CreatedAt), DeadlineAt: stamp(a.DeadlineAt), AnsweredBy: a.AnsweredBy, AnsweredAt: stamp(a.AnsweredAt),
		AnswerReason: a.AnswerReason, VoidReason: a.VoidReason,
	}
}

type listApprovalsAnswer struct {
	Approvals []approvalView `json:"approvals"`
	pageView
}

func listApprovals(ctx context.Context, c *call, in struct {
	paging
	Status    string `json:"status"`
	AgentName string `json:"agent_name"`
},
) (listApprovalsAnswer, error) {
	page, err := c.eng.Judge.Approvals(ctx, c.id.Tenant, core.Filter{Status: in.Status, Agent: in.AgentName, Page: in.Page, Size: in.PageSize})
	return listApprovalsAnswer{views(page.Items, viewApproval), viewPage(page.Info)}, err
}

type approvalAnswer struct {
	Approval approvalView `json:"approval"`
}

func showApproval(ctx context.Context, c *call, in struct {
	ApprovalID string `json:"approval_id"`
},
) (approvalAnswer, error) {
	a, err := c.eng.Judge.Approval(ctx, c.id.Tenant, in.ApprovalID)
	v := viewApproval(a)
	v.Args = a.Action.Args // with one approval only: they may be large
	return approvalAnswer{v}, err
}
