package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// invalid is a parameter that the controller itself refuses.
func invalid(field string, value core.Raw, why string) *OpError {
	return &OpError{Class: InvalidParameters, Code: codeInvalidParameter, Name: "INVALID_PARAMETER", Message: why, Field: field, Value: value}
}

// resolve checks what can be checked without a worker: that the role allows the
// method, what the parameters say about workspaces and time, and what the
// operation will do.
func (x *execution) resolve(ctx context.Context) error {
	agent := x.m.rec.Load()
	x.params = x.op.Params
	if len(x.params) == 0 {
		x.params = core.Raw(`{}`)
	}
	bad := core.CheckObject("params", x.params, core.MaxInput/2)
	if err := x.allowed(agent.Role); err != nil {
		return err
	}
	if bad != nil {
		return invalid("params", nil, bad.Error())
	}
	if err := x.common(agent); err != nil {
		return err
	}
	if err := x.places(ctx, agent); err != nil {
		return err
	}
	x.effects = []Effect{x.method.Effect}
	if x.method.Effect != Reads && x.method.Effect != Creates && x.space.WorkspaceID != agent.WorkspaceID {
		x.effects = append(x.effects, Elsewhere)
	}
	if x.method.Effect == Exports {
		return x.target(ctx)
	}
	return nil
}

// allowed holds the method against the agent's role. The allow-list rules: what
// is on neither list, or is no method at all, is refused like what is forbidden.
func (x *execution) allowed(name string) error {
	role, err := x.c.Role(x.by.Tenant, name)
	if err != nil {
		return err
	}
	m, known := FindMethod(x.op.Method)
	if x.method = m; known {
		x.call, x.method = m.Name, m.variant(x.params)
	}
	if known && role.Allows(x.method.Name) {
		return nil
	}
	why := "it is on neither list of the role"
	switch {
	case !known:
		why = "there is no such method"
		x.method = Method{Name: core.ClipTo(x.op.Method, 100)}
	case slices.Contains(role.ForbiddenOperations, x.method.Name) || slices.Contains(role.ForbiddenOperations, x.method.Of):
		why = "the role forbids it"
	}
	return &OpError{
		Class: RoleViolation, Name: string(RoleViolation), Field: "method", Value: core.MustEncode(x.method.Name),
		Message:    fmt.Sprintf("agent %s, a %s, can't carry out %s: %s", x.m.id, name, x.method.Name, why),
		Suggestion: "it may: " + strings.Join(role.AllowedOperations, ", "),
	}
}

func (x *execution) common(agent *Agent) error {
	if given := memberOf(x.params, "agent_id"); given != nil && x.method.Name != "agent.metrics" && textOf(x.params, "agent_id") != agent.AgentID {
		return invalid("agent_id", given, "agent_id: an agent acts in its own name, "+agent.AgentID)
	}
	x.limit = defaultLimit
	if given := memberOf(x.params, "deadline_ms"); given != nil {
		ms, err := strconv.Atoi(string(given))
		if err != nil || ms < 1 || time.Duration(ms)*time.Millisecond > longestLimit {
			return invalid("deadline_ms", given, "deadline_ms: want a whole number of milliseconds, 1-600000")
		}
		x.limit = time.Duration(ms) * time.Millisecond
	}
	return nil
}

// What names workspaces in parameters, beside workspace_id.
var (
	sourceParams = []string{"source_workspace_id", "source_workspace"}
	targetParams = []string{"target_workspace_id", "target_workspace"}
	otherParams  = []string{"base_workspace_id", "other_workspace_id", "with_workspace_id"}
)

// places finds the workspaces of the operation.
func (x *execution) places(ctx context.Context, agent *Agent) error {
	if x.method.Local { // about no content of a workspace
		x.space, x.others = &Workspace{TenantID: x.by.Tenant, WorkspaceID: agent.WorkspaceID}, nil
		return nil
	}
	own, err := x.named("workspace_id")
	if err != nil {
		return err
	}
	source, errSource := x.named(sourceParams...)
	target, errTarget := x.named(targetParams...)
	other, errOther := x.named(otherParams...)
	if err := cmp.Or(errSource, errTarget, errOther); err != nil {
		return err
	}
	if x.method.Effect == Merges {
		for _, need := range []struct{ name, value string }{{sourceParams[0], source}, {targetParams[0], target}} {
			if need.value == "" {
				return invalid(need.name, nil, need.name+": is missing; it names a workspace")
			}
		}
		own = target
	}
	if x.space, err = x.find(ctx, cmp.Or(own, agent.WorkspaceID)); err != nil {
		return err
	}
	x.others = nil
	for _, id := range []string{source, target, other} {
		if id == "" || id == x.space.WorkspaceID || slices.Contains(x.others, id) {
			continue
		}
		if _, err := x.find(ctx, id); err != nil {
			return err
		}
		x.others = append(x.others, id)
	}
	return nil
}

// named is the text under the first of some names that is there.
func (x *execution) named(names ...string) (string, error) {
	for _, name := range names {
		if given := memberOf(x.params, name); given != nil {
			id := textOf(x.params, name)
			if id == "" {
				return "", invalid(name, given, name+": want the id of a workspace")
			}
			return id, nil
		}
	}
	return "", nil
}

func (x *execution) find(ctx context.Context, id string) (*Workspace, error) {
	w, err := x.c.space(ctx, x.by, id)
	if err == nil || errors.Is(err, core.ErrForeign) {
		return w, err
	}
	return nil, &OpError{
		Class: WorkspaceError, Code: codeEntityNotFound, Name: "ENTITY_NOT_FOUND", Message: core.AsError(err).Message, Field: "workspace_id",
		Value: core.MustEncode(id), Suggestion: "workspace.list tells which there are",
	}
}

// target looks at the file that an export writes.
func (x *execution) target(ctx context.Context) error {
	path := textOf(x.params, "file_path")
	dir := x.c.directory(x.space)
	if path == "" || dir == "" {
		return nil // the environment says what is wrong with it
	}
	x.file = dir + "\x00" + path
	there := fileAt(dir, path)
	if string(memberOf(x.params, "overwrite")) == "false" || there == nil {
		return nil
	}
	if mine, err := x.own(ctx, there); err != nil || mine {
		return err
	}
	x.effects = append(x.effects, Overwrite)
	return nil
}
