package skill

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// Runner carries out the skills of one runner kind. Drivers provide them.
type Runner interface {
	// Check refuses, when a skill is loaded, a runner section that could never
	// run; the error names the field ("runner.argv").
	Check(spec Spec) error
	// Start begins one try and returns at once. ctx ends when the engine
	// closes. The work must end soon after Cancel; its Outcome carries the
	// result as a JSON object in Output. Time-outs, retries and the check
	// against returns_schema are the caller's.
	Start(ctx context.Context, call Call) (swarm.Work, error)
}

// Call is one try of a skill.
type Call struct {
	Skill   *Skill
	Tenant  string
	TaskID  string
	TraceID string
	AgentID string              // the subagent that runs it
	Session string              // the task's, "" for none
	Params  core.Raw            // valid, with defaults
	Results map[string]core.Raw // of earlier skills of the chain, by name
	Run     string              // names the run for process marks, unique for each try
	Step    string              // place of this skill in the task's run, the same for each try
	Attempt int                 // of the task
	// Files are what was judged; a runner that finds others starts nothing.
	Files []judge.File
	// Log receives output lines: level DEBUG|INFO|WARN|ERROR. It blocks when
	// the log falls behind.
	Log func(level, line string)

	// waits stops the time limits while others are waited for; may be nil.
	waits func(on bool)
}

// Forgetter is implemented by runners that keep something of a task until it is
// over: they let go of it in the commit that ends the task.
type Forgetter interface {
	Forget(tx *audit.Tx, task string) error
}

// Binder is implemented by runners whose specs name files of a work directory.
type Binder interface {
	// Bind finds the files that a spec names, as they are now.
	Bind(tenant string, spec Spec) []judge.File
}

// Effecter is implemented by runners that know what a spec does outside
// itself, whatever its file declares: a skill has these effects besides.
type Effecter interface {
	Effects(spec Spec) []Effect
}
