package cad

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
)

// AssignmentStatus is the model's status of a TaskAssignment.
type AssignmentStatus string

// The statuses of an assignment.
const (
	Pending    AssignmentStatus = "pending"
	InProgress AssignmentStatus = "in_progress"
	Completed  AssignmentStatus = "completed"
	Failed     AssignmentStatus = "failed"
	Blocked    AssignmentStatus = "blocked" // a dependency is not completed
)

// assignmentMoves are the model's transitions, and three that retrying and
// reworking add: what failed or is completed may be done once more.
var assignmentMoves = map[AssignmentStatus][]AssignmentStatus{
	Pending:    {InProgress, Blocked, Failed},
	Blocked:    {Pending, Failed},
	InProgress: {Completed, Failed, Pending}, // pending: its worker died, it is queued again
	Failed:     {Pending, Blocked},           // retry
	Completed:  {Pending, Blocked},           // rework
}

// Open says whether nobody has been given it and somebody still may.
func (a *TaskAssignment) Open() bool {
	return a.Unassigned && (a.Status == Pending || a.Status == Blocked)
}

// Step is one operation of an assignment. References in its params are filled
// in from the answers of earlier ones: ${ID.field} of the same assignment,
// ${tasks.TASK.ID.field} of one that it depends on, ${tasks.TASK.workspace_id}
// for where that one built, ${agent.workspace_id} for where this one does, and
// ${rework.…} in what is done again.
type Step struct {
	ID     string   `json:"id,omitempty" file:"word"`
	Method string   `json:"method" file:"word needed"`
	Params core.Raw `json:"params,omitzero" file:"object"` // JSON object
}

// Brief is what an assignment is to do, whoever does it.
type Brief struct {
	Description string `json:"description" file:"prose needed"`
	// RequiredOperations are methods that the agent's role must allow. Those of
	// the operations are among them, named or not.
	RequiredOperations []string `json:"required_operations" file:"word"`
	Dependencies       []string `json:"dependencies" file:"word"`
	SuccessCriteria    string   `json:"success_criteria" file:"prose"` // prose; Check is what decides
	Operations         []Step   `json:"operations,omitempty" file:""`
	// Check is a CEL expression that must hold at the end. Without one all
	// operations have to succeed and every solid has to be closed.
	Check string `json:"check,omitempty" file:"prose"`
	// Worker is the agent of the fleet that does an assignment without operations.
	Worker string `json:"worker,omitempty" file:"word"`
	// Rework is the task that is done again when Check does not hold, by its
	// ReworkOperations, and then this one, at most MaxRounds times in all. What
	// lies between them is done again too: by its ReworkOperations, or without
	// any by its Operations, which must bear that, as merging and measuring do.
	Rework           string `json:"rework,omitempty" file:"word"`
	MaxRounds        int    `json:"max_rounds,omitzero" file:"1-10"` // 1-10; 0 means 2
	ReworkOperations []Step `json:"rework_operations,omitempty" file:""`
}

// TaskAssignment is one task given to one agent (model 5, TaskAssignment). A
// record is never modified.
type TaskAssignment struct {
	TaskID  string `json:"task_id"`
	AgentID string `json:"agent_id"` // "" while nobody has it
	Brief
	Status      AssignmentStatus `json:"status"`
	AssignedAt  Seconds          `json:"assigned_at,omitzero"`
	CompletedAt Seconds          `json:"completed_at,omitzero"`
	// Result is {"operations":{ID:answer}, …} of a completed one, and
	// {"error":{…}} of one that failed.
	Result core.Raw `json:"result,omitzero"`

	TenantID    string `json:"tenant_id"`
	WorkflowID  string `json:"workflow_id,omitempty"`
	RoleName    string `json:"role_name,omitempty"` // that it is meant for
	WorkspaceID string `json:"workspace_id,omitempty"`
	SwarmTask   string `json:"swarm_task_id,omitempty"` // the newest task of the queue that carried it out
	TraceID     string `json:"trace_id,omitempty"`
	Round       int    `json:"round,omitzero"` // how often its rework was asked for
	Tries       int    `json:"tries,omitzero"` // how often it was dispatched
	Waiting     string `json:"approval_id,omitempty"`
	Done        int    `json:"operations_done,omitzero"`   // over all rounds
	DoneBefore  int    `json:"operations_before,omitzero"` // of them in earlier rounds
	Failures    int    `json:"operations_failed,omitzero"` // over all tries
	Index       int    `json:"index"`                      // place in its workflow, from 0
	// Unassigned: nobody has been given it yet, AgentID is a suggestion.
	Unassigned bool `json:"unassigned,omitzero"`
	// Rejected is why it is to be done again: what the review found.
	Rejected core.Raw `json:"rejected,omitzero"`
	AuditSeq uint64   `json:"audit_seq,omitzero"`
}

func (a *TaskAssignment) to(next AssignmentStatus, at Seconds) error {
	if !slices.Contains(assignmentMoves[a.Status], next) {
		return core.Errorf(core.Conflict, "task %s is %s: it can't become %s", a.TaskID, a.Status, next).With("field", "status").With("value", string(next))
	}
	a.Status = next
	a.CompletedAt = 0
	if next == Completed || next == Failed {
		a.CompletedAt, a.Waiting = at, ""
	}
	return nil
}

// Over reports whether it is completed or failed.
func (a *TaskAssignment) Over() bool { return a.Status == Completed || a.Status == Failed }

// rounds is how often a review may reject.
func (b *Brief) rounds() int {
	return cmp.Or(b.MaxRounds, defaultRounds)
}

// Steps is how many operations this round has.
func (a *TaskAssignment) Steps() int {
	if a.Round > 0 && len(a.ReworkOperations) > 0 {
		return len(a.ReworkOperations)
	}
	return len(a.Operations)
}

// Failure is why it failed; zero when it has not.
func (a *TaskAssignment) Failure() FailedResult {
	var r struct {
		Error FailedResult `json:"error"`
	}
	if a.Status != Failed || len(a.Result) == 0 || core.DecodeStored(a.Result, &r) != nil {
		return FailedResult{}
	}
	return r.Error
}

// required are all methods that the agent's role must allow, each once.
func (b *Brief) required() []string {
	all := slices.Clone(b.RequiredOperations)
	for _, s := range slices.Concat(b.Operations, b.ReworkOperations) {
		if !slices.Contains(all, s.Method) {
			all = append(all, s.Method)
		}
	}
	return all
}

// fits reports what a role does not allow of an assignment (model 5: required
// operations must all be in the agent's role).
func (b *Brief) fits(task string, role *RoleTemplate) error {
	for i, op := range b.required() {
		if !role.Allows(op) {
			return core.Errorf(core.InvalidInput, "task %s needs %s, which role %s does not allow; it allows %s",
				task, op, role.Name, listed(role.AllowedOperations)).
				With("error", "ROLE_VIOLATION").With("field", fmt.Sprintf("required_operations[%d]", i)).With("value", op).With("allowed", role.AllowedOperations)
		}
	}
	return nil
}

// Roots of references that are no operation's id.
const (
	rootTasks  = "tasks"
	rootRework = "rework"
	rootAgent  = "agent" // agent_id and workspace_id of the agent that works
)

// What ${tasks.TASK.…} names beside the operations of a task.
const (
	refWorkspace = "workspace_id"
	refAgent     = "agent_id"
)

// check lists what is wrong with a brief, as far as it can be seen alone, and
// returns it with its methods spelt the one way. at is put before the fields.
func (b Brief) check(at string, f *problems) Brief {
	f.note(at+"description", checkText(at+"description", b.Description, maxText))
	if b.SuccessCriteria != "" {
		f.note(at+"success_criteria", checkText(at+"success_criteria", b.SuccessCriteria, maxText))
	}
	b.RequiredOperations = slices.Clone(b.RequiredOperations)
	for i, op := range b.RequiredOperations {
		b.RequiredOperations[i] = f.method(fmt.Sprintf("%srequired_operations[%d]", at, i), op)
	}
	b.Operations = checkSteps(at+"operations", b.Operations, f)
	b.ReworkOperations = checkSteps(at+"rework_operations", b.ReworkOperations, f)
	if b.Check != "" {
		f.note(at+"check", checkCheck(at+"check", b.Check))
	}
	f.want(b.MaxRounds >= 0 && b.MaxRounds <= maxRounds, at+"max_rounds", b.MaxRounds, fmt.Sprintf("1-%d", maxRounds))
	f.want(b.Worker == "" || len(b.Operations) == 0, at+"worker", b.Worker, "a worker only for a task without operations")
	if b.Worker == "" && len(b.Operations) == 0 {
		f.refuse(at+"operations", "%soperations: none, and no worker: give the operations, or name in worker the agent of the fleet that does the task", at)
	}
	f.want(b.MaxRounds <= 0 || b.Rework != "", at+"max_rounds", b.MaxRounds, "rounds only with rework")
	if b.Rework != "" && b.Check == "" {
		f.refuse(at+"rework", "%srework: without a check nothing is ever rejected", at)
	}
	return b
}

// checkSteps looks at operations one by one. An operation of a rework may have
// the id of an earlier one: its answer takes the place of that one's.
func checkSteps(field string, steps []Step, f *problems) []Step {
	ids := map[string]bool{}
	if len(steps) > maxSteps {
		f.want(false, field, len(steps), fmt.Sprintf("at most %d operations", maxSteps))
		return steps
	}
	out := slices.Clone(steps)
	for i := range out {
		s := &out[i]
		at := fmt.Sprintf("%s[%d].", field, i)
		if s.ID != "" {
			word, rest := mapping.Word(s.ID)
			taken := slices.Contains([]string{rootTasks, rootRework, rootAgent, refWorkspace, refAgent}, s.ID)
			f.want(word != "" && rest == "" && len(s.ID) <= 50 && !taken, at+"id", s.ID,
				"1-50 letters, digits, - and _, and none of tasks, rework, agent, workspace_id, agent_id")
			f.want(!ids[s.ID], at+"id", s.ID, "a different id for each operation")
			ids[s.ID] = true
		}
		s.Method = f.method(at+"method", s.Method)
		if len(s.Params) == 0 {
			s.Params = core.Raw(`{}`)
		}
		f.note(at+"params", core.CheckObject(at+"params", s.Params, core.MaxInput))
	}
	return out
}

// checkReferences looks at what the operations of a task refer to.
func (s *Scenario) checkReferences(i int, f *problems) {
	t := &s.Tasks[i]
	field := fmt.Sprintf("task_sequence[%d].", i)
	in := references{before: s.before(t.TaskID), of: func(id string) []Step {
		o := s.task(id)
		return slices.Concat(o.Operations, o.ReworkOperations)
	}}
	in.check(field+"operations", t.Operations, f)
	in.rework = true
	in.check(field+"rework_operations", t.ReworkOperations, f)
}

// references is what the operations of a task may refer to.
type references struct {
	before  []string // tasks that are completed by then
	of      func(task string) []Step
	earlier []string // ids of operations before
	rework  bool     // what a review found is known
}

func (r *references) check(field string, steps []Step, f *problems) {
	for i, s := range steps {
		for _, u := range mapping.Uses(s.Params, fmt.Sprintf("%s[%d].params", field, i)) {
			why := u.Err
			if why == nil {
				why = r.why(u.Ref)
			}
			if why != nil {
				f.note(u.Field, mapping.InField(u.Field, why))
			}
		}
		if s.ID != "" {
			r.earlier = append(r.earlier, s.ID)
		}
	}
}

// why says why a reference leads nowhere, nil when it may lead somewhere.
func (r *references) why(ref *mapping.Reference) error {
	fail := func(format string, args ...any) error {
		return core.Errorf(core.InvalidInput, "%s: %s", ref.Text, fmt.Sprintf(format, args...))
	}
	switch {
	case ref.Root == rootRework && r.rework, ref.Root == rootAgent, slices.Contains(r.earlier, ref.Root):
		return nil
	case ref.Root == rootRework:
		return fail("only rework_operations know what a review found")
	case ref.Root != rootTasks && len(r.earlier) == 0:
		return fail("no operation with an id comes before this one")
	case ref.Root != rootTasks:
		return fail("there is no earlier operation %s; there are %s", ref.Root, strings.Join(mapping.SomeNames(r.earlier), ", "))
	case len(ref.Path) < 2 || ref.Path[0].Key == "" || ref.Path[1].Key == "":
		return fail("write ${tasks.TASK.OPERATION.field} or ${tasks.TASK.workspace_id}")
	}
	task, op := ref.Path[0].Key, ref.Path[1].Key
	if !slices.Contains(r.before, task) {
		return fail("%s is not among the dependencies: %s", task, strings.Join(mapping.SomeNames(r.before), ", "))
	}
	if op == refWorkspace || op == refAgent || slices.ContainsFunc(r.of(task), func(s Step) bool { return s.ID == op }) {
		return nil
	}
	return fail("task %s has no operation with the id %s", task, op)
}
