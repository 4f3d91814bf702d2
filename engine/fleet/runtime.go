package fleet

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Event is what a runtime reports about a running prompt. Its types are
//
//	message, thought   Text: what the agent said or reasoned
//	plan               Text: its plan, one step on each line; Steps: the same, where it knows them apart
//	log                Level, Text
//	tool_request       CallID, Tool, Args, Intent, Risk: may it?
//	tool_call          CallID, Tool, Text: the agent began something it did not ask for
//	tool_result        CallID, Status, Output, Error; Tool and Text of one it did not ask for
//	diff               CallID, Path, Text: how a file changes
//	mode               Text: the mode of its own permissions, Args {"mode", "wanted"}; Status "weaker" if it is not the wanted one
//	usage              Tokens, CostUSD: spent since the last
//	attention          Text: it asks for a person
//	model_request      CallID, Model: what a model is about to be asked; on record when Emit returns
//	model_response     CallID, Model; Status ok, error or interrupted; Error
//	result             Status, Output, Error, Confidence
type Event struct {
	Type       string
	Text       string
	Level      string
	CallID     string
	Tool       string
	Args       core.Raw
	Intent     string
	Risk       string
	Status     string // tool_result: ok|error; model_response: ok|error|interrupted; result: succeeded|failed
	Output     core.Raw
	Error      string
	Tokens     int64
	CostUSD    float64
	Confidence *float64
	Steps      []Step
	Path       string
	Model      *ModelCall
	// Bind, of a tool_request that we carry out for the agent, finds the files
	// that its arguments name, as they are now; nil where there are none.
	Bind func(args core.Raw) []judge.File
}

// ToolAnswer is the judge's word on a tool request.
type ToolAnswer struct {
	CallID   string
	Decision string // approve, deny, abort
	Args     core.Raw
	Files    []judge.File // that an approval is bound to
	Reason   string
}

// Runtime starts and keeps agents of one kind. Drivers provide it.
type Runtime interface {
	// Check validates what Create asks for.
	Check(c Create) error
	// Open prepares an agent; events about its health go to notify until ctx
	// ends. It must not run the command before the first prompt.
	Open(ctx context.Context, a Agent, notify func(Health)) (Handle, error)
}

// Health is a change in the state of an agent's runtime.
type Health struct {
	Status   AgentStatus // Starting, Idle, Offline, Failed; Busy with what no prompt asked for
	Reason   string
	PID      int
	Restarts int
	Lacks    string // layers of the wall that its process goes without, "" for none
	// WorkspaceID is the runtime's own id of where the agent works; "" leaves
	// the one that was made up.
	WorkspaceID string
}

// Keeper is a Runtime that keeps something for an agent beyond a handle, such
// as a machine elsewhere.
type Keeper interface {
	// Keep is told at start which agents of this runtime there are, of all
	// tenants; what is kept for others is given up.
	Keep(ctx context.Context, agents []Agent) error
	// Forget gives up what is kept for an agent whose record was removed. What
	// can't be done now is done later.
	Forget(ctx context.Context, a Agent) error
}

// Catalog is a Runtime whose projects and roles are kept by a server.
type Catalog interface {
	// Catalog lists them, of the server that an agent's options name.
	Catalog(ctx context.Context, options core.Raw) ([]Offer, error)
}

// Walled is a Runtime that starts processes here, behind a wall of which a
// profile says how high it is.
type Walled interface {
	// Profile is the one of agents that name none.
	Profile() string
}

// Homely is a Runtime whose options can reach for the engine's own machine.
type Homely interface {
	// Reach names those of the given options that do: places are files,
	// directories and accounts there, secrets are what sends a secret of the
	// engine somewhere, or says which.
	Reach(options core.Raw) (places, secrets []string)
}

// Offer is a project with its roles.
type Offer struct {
	Project Project `json:"project"`
	Roles   []Role  `json:"roles"`
}

// Prompt is one task for an agent.
type Prompt struct {
	TaskID  string
	Message string
	URI     string
	// Traceparent is the W3C header for what the agent causes elsewhere.
	Traceparent string
	// Past is what was said and done before the agent was there, of one that
	// goes on with another's work; nil for others. It comes before the first
	// prompt of each conversation.
	Past *Past
	// Emit takes each event in order; for a tool_request it blocks until the
	// judge has answered or ctx ended.
	Emit func(ctx context.Context, e Event) (ToolAnswer, error)
	Beat func()
}

// Past is what an agent goes on from.
type Past struct {
	Text  func(ctx context.Context) (string, error)
	Brief string // for the log, when it was told
}

// Handle is one open agent.
type Handle interface {
	// Prompt runs one task to its end.
	Prompt(ctx context.Context, p Prompt) (task.Outcome, error)
	// Interrupt asks the running prompt to stop, then kills after the grace.
	// It is called again until the prompt has ended; only the first counts.
	Interrupt()
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Stop ends the process; Restart ends it and clears its failures.
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	// Close ends everything and sweeps what the agent left behind.
	Close() error
}
