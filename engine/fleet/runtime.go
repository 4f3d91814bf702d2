package fleet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Event is what a runtime reports about a running prompt. Its types are
//
//	message, thought   Text: what the agent said or reasoned
//	plan               Text: its plan, one step on each line; Steps: the same, where it knows them apart
//	log                Level, Text
//	tool_request       CallID, Tool, Args, Intent, Risk: may it?
//	reply              CallID, Text: what it says to a question about a call that waits
//	withdraw           CallID, Text: it no longer wants a call that waits, and why
//	tool_call          CallID, Tool, Text: the agent began something it did not ask for
//	tool_result        CallID, Status, Output, Error; Tool and Text of one it did not ask for
//	diff               CallID, Path, Text: how a file changes
//	mode               Text: the mode of its own permissions, Args {"mode", "wanted"}; Status "weaker" if it is not the wanted one
//	usage              Tokens, CostUSD: spent since the last; Split of the tokens and Context, where known
//	attention          Text: it asks for a person
//	prompt             Text: what the agent is told meanwhile
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
	Split      Split
	Context    Context
	Confidence *float64
	Steps      []Step
	Path       string
	Model      *ModelCall
	// Ours says that we carry a tool_request out for the agent, and word its intent.
	Ours bool
	// Fixed says that a tool_request's arguments can't be edited: the agent carries it
	// out, and takes a yes or a no alone.
	Fixed bool
	// Bind, of a tool_request, finds the files that its arguments name, as they are now;
	// nil where there are none.
	Bind func(args core.Raw) []judge.File
	// Cell, of a tool_request, is what holds the process that carries it out, as it was
	// really started; nil where nothing here does.
	Cell *Cell
	// Asks, of a tool_request, is what it asks a person: it is put as that. Who asks is
	// filled in.
	Asks *judge.Question
	// Turn, of a prompt or result that is overheard, is the turn of the conversation that
	// it is of: one of an agent's alone. The same may be told again. Said, of such a
	// result, is all that the agent said in the turn so far.
	Turn string
	Said []string
}

// Cell is what holds a process of an agent.
type Cell struct {
	Dir   string // that it works in
	Home  string // that is its own, "" for one that goes with it
	Loose string // why more can feel what it does than its directory, home and /tmp; "" for nothing
}

// ToolAnswer is the judge's word on a tool request.
type ToolAnswer struct {
	CallID   string
	Decision string // approve, deny, abort
	Args     core.Raw
	Files    []judge.File // that an approval is bound to
	Content  core.Raw     // what a question was answered with
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
	Said     string // the last lines that a process wrote which can't be used; "" for none
	// WorkspaceID is the runtime's own id of where the agent works; "" leaves
	// the one that was made up.
	WorkspaceID string
	// Trouble is why it can't work until somebody does something; nil for nothing.
	Trouble *Trouble
	// Offers is what its program can be set to; nil leaves what was known.
	Offers *Offers
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

// Hosted is a Runtime that may run agents on other machines.
type Hosted interface{ Hosted() bool }

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
	Attempt int // of the task, from 0; what an engine's end cuts off goes on as the same one
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
	// Settle waits until none of the calls that were emitted is open; it may be nil.
	Settle func(ctx context.Context) error
	Beat   func()
	// Next takes what the agent is to be told before the task is over; nil for
	// nothing more. It is for agents that hear between their turns, and may be nil.
	Next func(ctx context.Context) (*Message, error)
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

// Outlasting is a Runtime whose agents work on when the engine dies.
type Outlasting interface{ Outlasts() bool }

// Leaver is a Handle whose work goes on elsewhere when the engine closes: the next one
// takes the same task up.
type Leaver interface {
	// Leave ends the running prompt here, and interrupts nothing.
	Leave()
}

// ModelCall is what a model is asked, or what it answered, where a runtime
// sees the two talk. The tokens are for the record: what counts for budgets
// comes as an event of type usage.
type ModelCall struct {
	Name string // of the model
	// Sessions are what a request says it is part of, where its API has a place
	// for that. The agent chose them.
	Sessions []string
	Params   core.Raw     // of a request: its settings, an object
	Tools    core.Raw     // of a request, as the model is given them
	Messages []dag.Spoken // the whole conversation, or the answer alone
	Tokens   *dag.Usage   // of an answer, where it tells of them
	Finish   string       // of an answer: why it ends, in the provider's word
	Fault    string       // of an answer that is not ok: a short code
	Gone     bool         // of one that is interrupted: the agent gave it up
	Took     time.Duration
}

// Split is what tokens were: in all where it is of a run, else since the last.
type Split struct {
	Input  int64 `json:"input_tokens,omitzero"` // the cached ones too
	Output int64 `json:"output_tokens,omitzero"`
	Cached int64 `json:"cached_tokens,omitzero"`
}

// Plus is the sum of two.
func (s Split) Plus(o Split) Split {
	return Split{s.Input + o.Input, s.Output + o.Output, s.Cached + o.Cached}
}

// Context is how full the context of an agent's conversation is, in tokens.
type Context struct {
	Used int64 `json:"used,omitzero"`
	Size int64 `json:"size,omitzero"` // 0 where it is not known
}

// modelLine is the log's line about an answer.
func modelLine(e *Event) (level, text string) {
	c := e.Model
	if c == nil {
		return "WARN", "a model was asked, of which nothing is known"
	}
	text = fmt.Sprintf("model %s: %s", core.ClipTo(c.Name, maxCall), core.ClipTo(e.Status, maxCall))
	if t := c.Tokens; t != nil {
		text += fmt.Sprintf(", %d tokens in (%d cached), %d out", t.PromptTokens, t.CachedTokens, t.CompletionTokens)
	}
	text += fmt.Sprintf(", %s", c.Took.Round(time.Millisecond))
	if e.Status == "ok" {
		return "DEBUG", text
	}
	return "WARN", text + ": " + oneLine(c.Fault+" "+e.Error, maxIntent)
}

// maxOffers bounds the projects and roles that are learned at once.
const maxOffers = 1000

// Reach names the options that reach for the engine's own machine, as Homely
// has it. Options that make no sense reach for nothing.
func (f *Fleet) Reach(runtime string, options core.Raw) (places, secrets []string) {
	h, ok := f.opt.Runtimes[cmp.Or(runtime, "exec")].(Homely)
	if options, err := checkOptions(options); ok && err == nil && options != nil {
		return h.Reach(options)
	}
	return nil, nil
}

// Offers asks a runtime's server for its projects and roles, for options as an
// agent would be given them, and records them. A runtime that has no such
// server offers nothing.
func (f *Fleet) Offers(ctx context.Context, by core.Caller, runtime string, options core.Raw) ([]Offer, error) {
	rt, ok := f.opt.Runtimes[runtime]
	if !ok {
		return nil, core.Invalid("runtime", runtime, f.runtimes())
	}
	catalog, ok := rt.(Catalog)
	if !ok {
		return nil, nil
	}
	if options, err := checkOptions(options); err != nil {
		return nil, err
	} else if options == nil {
		return nil, core.Invalid("options", "{}", "what the runtime needs to find its server")
	}
	offers, err := catalog.Catalog(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("ask runtime %s for its projects: %w", runtime, err)
	}
	offers = fit(offers)
	return offers, f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		for _, o := range offers {
			if err := keep(tx, f.projects, o.Project.key(), o.Project, true); err != nil {
				return err
			}
			for _, r := range o.Roles {
				old, err := f.roles.At(tx, r.key())
				if err != nil {
					return err
				}
				if old != nil {
					r.Template = old.Template
				}
				if err := keep(tx, f.roles, r.key(), r, true); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// learn records what the server of an agent offers. It is for lists alone, so
// a failure leaves them as they are.
func (f *Fleet) learn(ctx context.Context, m *member) {
	a := m.rec.Load()
	if _, ok := f.opt.Runtimes[a.Runtime].(Catalog); ok {
		_, _ = f.Offers(ctx, m.self(), a.Runtime, a.Options)
	}
}

// fit leaves out what a list could not show.
func fit(offers []Offer) (out []Offer) {
	n := 0
	for _, o := range offers {
		if checkLabel("project", o.Project.Name) != nil || n >= maxOffers {
			continue
		}
		n++
		o.Project.ID, o.Project.Description = core.ClipTo(o.Project.ID, maxCall), oneLine(o.Project.Description, maxReason)
		var roles []Role
		for _, r := range o.Roles {
			if checkLabel("role", r.Name) != nil || n >= maxOffers {
				continue
			}
			n++
			r.ID, r.ProjectID, r.ProjectName = core.ClipTo(r.ID, maxCall), o.Project.ID, o.Project.Name
			roles = append(roles, r)
		}
		o.Roles = roles
		out = append(out, o)
	}
	return out
}
