// Package skill keeps what agents can do: skills with checked parameters and
// results, the subagents that run them, and a record of every execution
// (seed 3). Skills run as skill.invoke tasks of the one queue, behind the one
// gate.
package skill

import (
	"time"

	"swarmdeck/engine/core"
)

// Skill is one version of a capability (seed 3, Skill). It is immutable once
// loaded: a changed file makes a new value.
type Skill struct {
	TenantID         string    `json:"tenant_id"`
	Name             string    `json:"name"`                     // letters, digits, hyphens; 3-50
	Version          string    `json:"version"`                  // X.Y.Z
	Description      string    `json:"description,omitempty"`    // at most 500 characters
	ParametersSchema core.Raw  `json:"parameters_schema"`        // JSON Schema 2020-12
	ReturnsSchema    core.Raw  `json:"returns_schema,omitempty"` // JSON Schema 2020-12
	Timeout          int       `json:"timeout"`                  // seconds of one try, 1-3600, default 30
	MaxRetries       int       `json:"max_retries"`              // 0-5
	Dependencies     []string  `json:"dependencies"`             // skill names, or name@version
	Tags             []string  `json:"tags"`                     // at most 10 of at most 30 characters
	Effects          []Effect  `json:"effects"`                  // what it does outside itself; ours
	Topic            string    `json:"topic,omitempty"`          // what its end is announced under; ours, see Area
	Runner           Spec      `json:"runner"`
	Digest           string    `json:"digest"`              // sha256 over the definition's canonical JSON
	Source           string    `json:"source,omitempty"`    // file it came from, or Builtin
	CreatedAt        time.Time `json:"created_at,omitzero"` // zero for the program's own
	UpdatedAt        time.Time `json:"updated_at,omitzero"`

	auditSeq uint64
	contract *contract // its schemas, ready; nil for a skill from elsewhere
}

// Ref is "name@version".
func (s *Skill) Ref() string { return s.Name + "@" + s.Version }

// Area is the first part of the topics on which the end of a run is
// published: AREA.complete and AREA.failed. It is Topic, else the first tag if
// that can be one, else the name: the seed's skill "navigate", tagged
// "navigation", publishes navigation.complete.
func (s *Skill) Area() string {
	switch {
	case s.Topic != "":
		return s.Topic
	case len(s.Tags) > 0 && goodTopic(s.Tags[0]):
		return s.Tags[0]
	}
	return s.Name
}

// Effect is a declared side effect of a skill.
type Effect string

// The effects, as files name them.
const (
	Read    Effect = "read"
	Write   Effect = "write"
	Network Effect = "network"
	Exec    Effect = "exec"
)

// Spec is the runner section of a skill file. Kind says which other fields
// count; those of another kind are refused.
type Spec struct {
	Kind   string            `json:"kind"`             // builtin, exec, agent, composite; mcp and cad come with their drivers
	Name   string            `json:"name,omitempty"`   // builtin
	Argv   []string          `json:"argv,omitempty"`   // exec
	Dir    string            `json:"dir,omitempty"`    // exec; absolute once loaded from a file
	Env    map[string]string `json:"env,omitempty"`    // exec
	Agent  string            `json:"agent,omitempty"`  // agent
	Prompt string            `json:"prompt,omitempty"` // agent; ${param} stands for a parameter
	Server string            `json:"server,omitempty"` // mcp
	Tool   string            `json:"tool,omitempty"`   // mcp
	Method string            `json:"method,omitempty"` // cad
	Steps  []Step            `json:"steps,omitempty"`  // composite
}

// Step is one step of a composite skill. Texts of its parameters may hold
// ${params.field} and ${step.field}, the latter of an earlier step only.
type Step struct {
	ID                string      `json:"id"`
	Skill             string      `json:"skill"` // name or name@version
	Params            core.Raw    `json:"params,omitempty"`
	ErrorPolicy       ErrorPolicy `json:"error_policy"`                // default abort
	Fallback          string      `json:"fallback,omitempty"`          // skill that runs instead, with the same parameters
	BackoffMultiplier float64     `json:"backoff_multiplier,omitzero"` // of the pause between tries, 1-10, default 2
}

// ErrorPolicy says what a composite does when a step fails.
type ErrorPolicy string

// The policies.
const (
	Retry    ErrorPolicy = "retry"    // again, up to the skill's max_retries (at least once)
	Abort    ErrorPolicy = "abort"    // end the composite as failed
	Fallback ErrorPolicy = "fallback" // run another skill in its place
)
