package mcp

import (
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// What clients see of records: the seeds' fields and what helps to act, and
// nothing that may be secret, such as an environment.

// agentView is an agent (model 2).
type agentView struct {
	Name        string    `json:"name"`
	WorkspaceID string    `json:"workspace_id"`
	Status      string    `json:"status"`
	Role        string    `json:"role"`
	Project     string    `json:"project"`
	LastTask    string    `json:"last_task,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`

	State      string  `json:"state" jsonschema:"starting, idle, working, waiting for you, pausing, paused, offline or failed"`
	Runtime    string  `json:"runtime"`
	Profile    string  `json:"profile,omitempty" jsonschema:"how much of the machine it reaches: reader, worker or open"`
	Reason     string  `json:"reason,omitempty" jsonschema:"why it is offline or failed"`
	TaskID     string  `json:"task_id,omitempty" jsonschema:"what it works on"`
	SessionID  string  `json:"session_id,omitempty"`
	Attention  string  `json:"attention,omitempty" jsonschema:"why it asks for a person"`
	ApprovalID string  `json:"approval_id,omitempty" jsonschema:"the approval it waits for"`
	Tokens     int64   `json:"tokens"`
	CostUSD    float64 `json:"cost_usd"`
}

func viewAgent(a fleet.Agent) agentView {
	return agentView{
		Name: a.Name, WorkspaceID: a.WorkspaceID, Status: string(a.Status), Role: a.Role, Project: a.Project,
		LastTask: a.LastTask, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
		State: a.State(), Runtime: a.Runtime, Profile: a.Profile, Reason: a.Reason, TaskID: a.TaskID, SessionID: a.SessionID,
		Attention: a.Attention, ApprovalID: a.Waiting, Tokens: a.Usage.Tokens, CostUSD: a.Usage.CostUSD,
	}
}

// taskView is a task (model 1). Its input comes with show_task only.
type taskView struct {
	TaskID       string      `json:"task_id"`
	TraceID      string      `json:"trace_id"`
	Kind         string      `json:"kind"`
	Status       task.Status `json:"status"`
	Title        string      `json:"title,omitempty"`
	Agent        string      `json:"agent,omitempty"`
	SessionID    string      `json:"session_id,omitempty"`
	ParentTaskID string      `json:"parent_task_id,omitempty"`
	Priority     int         `json:"priority"`
	Attempt      int         `json:"attempt"`
	MaxAttempts  int         `json:"max_attempts"`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	CompletedAt  *time.Time  `json:"completed_at,omitempty"`
	Waiting      string      `json:"waiting,omitempty" jsonschema:"approval while a person must answer"`
	ApprovalID   string      `json:"approval_id,omitempty"`
	ErrorCode    string      `json:"error_code,omitempty"`
	CreatedBy    string      `json:"created_by,omitempty"`
	Input        core.Raw    `json:"input,omitempty"`
}

func viewTask(t task.Task) taskView {
	v := taskView{
		TaskID: t.TaskID, TraceID: t.TraceID, Kind: t.Kind, Status: t.Status, Title: t.Title, Agent: t.Agent,
		SessionID: t.SessionID, ParentTaskID: t.ParentTaskID, Priority: t.Priority, Attempt: t.Attempt, MaxAttempts: t.MaxAttempts,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Waiting: t.Waiting, ErrorCode: t.ErrorCode, CreatedBy: t.CreatedBy,
		Input: t.Input,
	}
	if t.Waiting != "" {
		v.ApprovalID = t.ApprovalID
	}
	if !t.CompletedAt.IsZero() {
		v.CompletedAt = &t.CompletedAt
	}
	return v
}

// views makes a list of views that is never null.
func views[T, V any](items []T, view func(T) V) []V {
	out := make([]V, len(items))
	for i, item := range items {
		out[i] = view(item)
	}
	return out
}

// pageView is a page's place in the whole.
type pageView struct {
	TotalCount      int  `json:"total_count"`
	Page            int  `json:"page"`
	PageSize        int  `json:"page_size"`
	HasNextPage     bool `json:"has_next_page"`
	HasPreviousPage bool `json:"has_previous_page"`
}

func viewPage(i core.PageInfo) pageView {
	return pageView{TotalCount: i.Total, Page: i.Page, PageSize: i.PageSize, HasNextPage: i.Next, HasPreviousPage: i.Previous}
}

// paging are the arguments that choose a page.
type paging struct {
	Page     int `json:"page"`
	PageSize int `json:"page_size"`
}

func pageParams(size int) []param {
	return []param{
		{name: "page", kind: integer, about: "page, from 1; one past the end is empty", def: 1, min: 1, max: 1_000_000},
		{name: "page_size", kind: integer, about: "how many to a page", def: size, min: 1, max: core.MaxPageSize},
	}
}
