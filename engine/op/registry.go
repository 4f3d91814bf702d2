package op

import "strings"

// Noun is a kind of record, and what can be done with it.
type Noun struct {
	Name  string // "task"
	About string // "Units of work"
	// Parts are what is kept below the noun, with what they are about: "rules" for
	// "policy rules list".
	Parts map[string]string
	// Ops makes its operations for one call.
	Ops func() []*Op
}

// Nouns are all nouns with operations.
func Nouns() []Noun {
	return []Noun{
		{Name: "run", About: "Run a command as a task", Ops: runs},
		{Name: "status", About: "What needs you, what failed and who works", Ops: statuses},
		{Name: "overview", About: "How it goes at a glance, and how it went", Ops: overviews},
		{Name: "why", About: "Why something waits, failed or stands still", Ops: whys},
		{Name: "story", About: "What happened since a time", Ops: stories},
		{Name: "log", About: "What an agent or a task said", Ops: logs},
		{Name: "show", About: "What something is", Ops: shows},
		{Name: "tell", About: "Say something to an agent", Ops: tells},
		{Name: "session", About: "Time-bounded operating contexts", Ops: sessions},
		{Name: "task", About: "Units of work", Ops: tasks},
		{Name: "result", About: "What came of tasks", Ops: results},
		{Name: "agent", About: "The fleet", Ops: agents},
		{Name: "engine", About: "Who works on the data", Ops: engines},
		{Name: "host", About: "Other machines on which agents run", Ops: hosts},
		{Name: "review", About: "What agents changed in their trees, and what you say of it", Ops: reviews},
		{Name: "merge", About: "Take agents' work over", Ops: merges},
		{Name: "push", About: "Send agents' work to a remote", Ops: pushes},
		{Name: "project", About: "Sets of agents' roles", Ops: projects},
		{Name: "role", About: "What agents of a project are for", Ops: roles},
		{
			Name: "cad", About: "Agents that model solids together", Ops: cads,
			Parts: map[string]string{
				"agent": "Who models: one agent, one role, one workspace", "controller": "What binds all CAD agents of a tenant",
				"workspace": "What the CAD agents build", "scenario": "Workflows of CAD agents that can be run again and again",
				"workflow": "Runs of scenarios and of decomposed goals",
			},
		},
		{Name: "approval", About: "Questions that wait for a person", Ops: approvals},
		{Name: "decision", About: "What the judge and people decided", Ops: decisions},
		{
			Name: "audit", About: "The log that proves what happened", Ops: auditLog,
			Parts: map[string]string{"key": "The keys that sign the log", "witness": "Where checkpoints of the log are published by themselves"},
		},
		{
			Name: "dag", About: "The agents' canonical record: events, nodes and edges", Ops: dags,
			Parts: map[string]string{"intent": "One change of the world that somebody wants", "resource": "What agents work on: attach it, keep its state, make it again"},
		},
		{Name: "grant", About: "What may happen without asking, for a while", Ops: grants},
		{
			Name: "policy", About: "What the judge goes by", Ops: policies,
			Parts: map[string]string{"rules": `The "always" rules operators made`},
		},
		{Name: "skill", About: "What agents can do", Ops: skills},
		{Name: "bus", About: "Messages between agents", Ops: messages},
		{Name: "subagent", About: "What runs skills", Ops: subagents},
		{Name: "tenant", About: "Isolated worlds within the data file", Ops: tenants, Parts: map[string]string{
			"retention": "How long finished things stay", "slots": "How many tasks run at once",
		}},
		{Name: "operator", About: "Who may enter the tenant over SSH", Ops: operators},
		{Name: "notice", About: "Tell those who look at no screen", Ops: notices},
		{Name: "egress", About: "Where agents may connect to", Ops: egressRules},
		{Name: "files", About: "What agents may read and write beside their directory, and what is hidden", Ops: fileRules},
		{Name: "budget", About: "Limits on tokens, cost, tasks and time", Ops: budgets},
		{Name: "estop", About: "Emergency stop of a tenant", Ops: estops},
		{Name: "store", About: "The data file", Ops: stores},
		{Name: "mcp", About: "Serve the Model Context Protocol", Ops: servers},
		{Name: "secret", About: "Credentials that agents and tasks get unseen", Ops: secrets},
	}
}

// Of is the noun of a name; the zero Noun when it has no operations here.
func Of(name string) Noun {
	for _, n := range Nouns() {
		if n.Name == name {
			return n
		}
	}
	return Noun{}
}

// Find makes the operation of a name; nil when there is none.
func Find(name string) *Op {
	noun, _, _ := strings.Cut(name, " ")
	if n := Of(noun); n.Ops != nil {
		for _, o := range n.Ops() {
			if o.Name == name {
				return o
			}
		}
	}
	return nil
}

// Tool is how an operation is offered to clients of the Model Context Protocol,
// agents among them, each of whose calls is judged. What it does not say follows
// from the operation: its description, arguments, bounds, hints and result.
type Tool struct {
	Name  string            // "cancel_task"; "" offers it to no client
	About string            // what a model reads; "" is the operation's Short
	Names map[string]string // parameters that have another name there: "text": "task"; "-" leaves one out
	Need  []string          // parameters that can't be left out there
	Free  []string          // parameters that can be left out there alone: the check fills them in
	By    []string          // by what its list can be narrowed; nil is by all that lists can
	Size  int               // records on a page unless more are asked for; 0 is core.DefaultPageSize
}
