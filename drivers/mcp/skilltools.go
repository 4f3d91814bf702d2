package mcp

import (
	"cmp"
	"context"
	"errors"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/skill"
)

func skillTools() []tool {
	ref := param{name: "skill", kind: text, about: "name, or name@version; without a version the newest", required: true, min: 1, max: 100}
	return []tool{
		define("list_skills", "List skills", "List the skills that can be run.", op.Reads, append([]param{
			{name: "tag", kind: text, about: "only with this tag", min: 1, max: 30},
			{name: "match", kind: text, about: "only with this text", min: 1, max: 200},
		}, pageParams(core.DefaultPageSize)...), listSkills),
		define("show_skill", "Show a skill", "Show a skill with the schemas of its parameters and its result.", op.Reads, []param{ref}, showSkill),
		define("invoke_skill", "Run a skill", "Run a skill after what it depends on, with a subagent of its own. It is judged at its start and goes on after the call.", op.Writes, []param{
			ref,
			{name: "params", kind: object, about: "parameters that fit its schema", def: core.Raw("{}")},
			{name: "name", kind: text, about: "name of the subagent", min: 1, max: 100},
			{name: "session_id", kind: text, about: "session that it belongs to", min: 1, max: 128},
			{name: "timeout_s", kind: integer, about: "seconds that the whole run may take", min: 1, max: 86400},
			{name: "wait_s", kind: integer, about: "seconds to wait for its end", def: 0, min: 0, max: 50},
		}, invokeSkill),
	}
}

type skillView struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Description  string   `json:"description,omitempty"`
	Dependencies []string `json:"dependencies"`
	Tags         []string `json:"tags"`
	Effects      []string `json:"effects"`
	Runner       string   `json:"runner"`
	Timeout      int      `json:"timeout"`
	MaxRetries   int      `json:"max_retries"`
	Digest       string   `json:"digest"`

	ParametersSchema core.Raw `json:"parameters_schema,omitempty"`
	ReturnsSchema    core.Raw `json:"returns_schema,omitempty"`
}

func viewSkill(s *skill.Skill) skillView {
	return skillView{
		Name: s.Name, Version: s.Version, Description: s.Description, Dependencies: append([]string{}, s.Dependencies...),
		Tags: append([]string{}, s.Tags...), Effects: views(s.Effects, func(e skill.Effect) string { return string(e) }),
		Runner: s.Runner.Kind, Timeout: s.Timeout, MaxRetries: s.MaxRetries, Digest: s.Digest,
	}
}

type listSkillsAnswer struct {
	Skills []skillView `json:"skills"`
	core.PageInfo
}

func listSkills(_ context.Context, c *call, in struct {
	paging
	Tag   string `json:"tag"`
	Match string `json:"match"`
},
) (listSkillsAnswer, error) {
	var tags []string
	if in.Tag != "" {
		tags = []string{in.Tag}
	}
	page, err := c.eng.Skills.List(c.id.Tenant, core.Filter{Match: in.Match, Page: in.Page, Size: in.PageSize}, tags...)
	return listSkillsAnswer{views(page.Items, viewSkill), page.Info}, err
}

type skillArg struct {
	Skill string `json:"skill"`
}

type skillAnswer struct {
	Skill skillView `json:"skill"`
}

func showSkill(_ context.Context, c *call, in skillArg) (skillAnswer, error) {
	k, err := c.eng.Skills.Skill(c.id.Tenant, in.Skill)
	if err != nil {
		return skillAnswer{}, err
	}
	v := viewSkill(k)
	v.ParametersSchema, v.ReturnsSchema = k.ParametersSchema, k.ReturnsSchema
	return skillAnswer{v}, nil
}

type subagentView struct {
	AgentID    string              `json:"agent_id"`
	Name       string              `json:"name,omitempty"`
	State      skill.State         `json:"state"`
	Skill      string              `json:"skill,omitempty"`
	TaskID     string              `json:"task_id,omitempty"`
	TraceID    string              `json:"trace_id,omitempty"`
	ApprovalID string              `json:"approval_id,omitempty" jsonschema:"the approval it waits for"`
	Error      string              `json:"error,omitempty"`
	Results    map[string]core.Raw `json:"results" jsonschema:"by skill name"`
}

type subagentAnswer struct {
	Subagent subagentView `json:"subagent"`
}

func invokeSkill(ctx context.Context, c *call, in struct {
	skillArg
	Params    core.Raw `json:"params"`
	Name      string   `json:"name"`
	SessionID string   `json:"session_id"`
	TimeoutS  int      `json:"timeout_s"`
	WaitS     int      `json:"wait_s"`
},
) (subagentAnswer, error) {
	v := skill.Invoke{
		Skill: in.Skill, Params: in.Params, Name: in.Name, Session: in.SessionID, Trace: cmp.Or(c.parent, c.trace),
		Timeout: time.Duration(in.TimeoutS) * time.Second,
	}
	if c.agent != nil && v.Session == "" {
		v.Session = c.agent.SessionID
	}
	a, err := c.eng.Skills.Invoke(ctx, c.by, v)
	if err != nil {
		return subagentAnswer{}, err
	}
	if in.WaitS > 0 {
		wait, cancel := context.WithTimeout(ctx, time.Duration(in.WaitS)*time.Second)
		defer cancel()
		if a, err = c.eng.Skills.Wait(wait, c.by, a.AgentID); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return subagentAnswer{}, err
		}
	}
	out := subagentView{
		AgentID: a.AgentID, Name: a.Name, State: a.State, Skill: a.Skill, TaskID: a.TaskID, TraceID: a.TraceID,
		ApprovalID: a.Waiting, Error: a.Error, Results: a.Results,
	}
	if out.Results == nil {
		out.Results = map[string]core.Raw{}
	}
	return subagentAnswer{out}, nil
}
