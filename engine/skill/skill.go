// Package skill keeps what agents can do: skills with checked parameters and
// results, the subagents that run them, and a record of every execution
// (model 3). Skills run as skill.invoke tasks of the one queue, behind the one
// gate.
package skill

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Skill is one version of a capability (model 3, Skill). It is immutable once
// loaded: a changed file makes a new value.
type Skill struct {
	TenantID         string    `json:"tenant_id,omitempty"`
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
	Digest           string    `json:"digest,omitempty"`    // sha256 over the definition's canonical JSON
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
// that can be one, else the name: the model's skill "navigate", tagged
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

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Judge   *judge.Judge
	Swarm   *swarm.Swarm
	Tasks   *task.Table
	Bus     *bus.Bus          // takes messages about runs, and gives those that are reacted to
	Runners map[string]Runner // by kind; composite needs none
	Static  []Skill           // the program's own: every tenant has them
	// MaxSubagents is how many subagents of a tenant may be live at once; 0
	// means 100. Each runs beside the others.
	MaxSubagents int
	// Env reports an environment that a skill can't have, naming the field; nil
	// takes any.
	Env      func(tenant string, env map[string]string) error
	ReadOnly bool // repair nothing
	// Own are the engine's own files, which no skill is loaded from.
	Own    *safeopen.Own
	Health *health.Troubles
	Record Recorder // nil: nobody listens
}

// Recorder is told what subagents do, in the transactions that it consists of. old is
// nil of what is new.
type Recorder interface {
	Subagent(tx *audit.Tx, old, a *Subagent) error
	Execution(tx *audit.Tx, old, e *Execution) error
	// Tried comes after each try of an execution and before its end, with the places
	// that its runner names (see Placed) and since when it may have changed them.
	Tried(ctx context.Context, e *Execution, places []string, since time.Time)
}

// Placed is a Runner that knows which files and directories a skill with these
// parameters is there to change for a task: absolute paths.
type Placed interface {
	Places(tenant, task string, spec Spec, params core.Raw) []string
}

// component is what troubles of this package are told under.
const component = "skills"

// Skills keeps every tenant's skills and the subagents that run them. It
// carries out skill.invoke tasks for the swarm.
//
// Lock order: no lock is held while the ledger, the swarm, the judge or a
// runner is called.
type Skills struct {
	*registry
	running atomic.Bool // Run is at work

	agents record.Table[Subagent]
	execs  record.Table[Execution]
	live   record.Mirror[Subagent] // those that are not over

	mu    sync.RWMutex
	plans map[string]*index // what the runs of live ones are made of, by id
}

// New reads what the store has, and ends what an engine that died left half
// done. It starts nothing. The caller makes it known to the swarm (Runner of
// KindInvoke) and to the judge (Await GateSkill).
func New(ctx context.Context, opt Options) (*Skills, error) {
	ids, err := opt.Swarm.Here(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the skills: %w", err)
	}
	opt.MaxSubagents = cmp.Or(opt.MaxSubagents, 100)
	s := &Skills{plans: map[string]*index{}}
	s.live.Keep = func(a *Subagent) bool { return !a.State.Final() }
	if s.registry, err = newRegistry(ctx, opt, ids); err != nil {
		return nil, err
	}
	s.agents, s.execs = s.agentKind(), s.execKind()
	opt.Ledger.Register(s.agents.Auditable(), s.execs.Auditable())
	if err := opt.Health.Tenants(ctx, component, ids, func(tenant string) error { return s.recall(ctx, tenant) }); err != nil {
		return nil, fmt.Errorf("read the subagents: %w", err)
	}
	return s, nil
}

// Run reads the skills again whenever their files change, until ctx ends.
func (s *Skills) Run(ctx context.Context) error {
	s.running.Store(true)
	defer s.running.Store(false)
	return s.watch(ctx)
}

// left reports that what is under way by its record was left so by an engine
// that ended, a killed one for example: only one that runs goes on with it.
func (s *Skills) left(underWay bool) bool { return underWay && !s.running.Load() }

// alive is a subagent that is not over, nil when there is none with this id.
func (s *Skills) alive(tenant, id string) *Subagent { return s.live.Get(tenant, id) }

// Known reports whether an id is that of a live subagent. With All and Elsewhere
// it says who sends and gets messages; they may be called inside transactions.
func (s *Skills) Known(tenant, id string) bool { return s.alive(tenant, id) != nil }

// All are the ids of the live subagents.
func (s *Skills) All(tenant string) []string { return slices.Sorted(maps.Keys(s.live.Of(tenant))) }

// Elsewhere reports whether an id is that of another tenant's live subagent.
func (s *Skills) Elsewhere(tenant, id string) bool { return s.live.Elsewhere(tenant, id) }

// Live are a tenant's subagents that are not over, oldest first. The records
// are shared: they must not be modified. They have no results.
func (s *Skills) Live(tenant string) []*Subagent {
	var all []*Subagent
	for _, a := range s.live.Of(tenant) {
		if s.left(a.State == Running) {
			c := *a
			c.left, a = true, &c
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *Subagent) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.AgentID, b.AgentID))
	})
	return all
}
