package keeper

import (
	"fmt"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// Ending says who ended a prompt before its time.
type Ending int

// The endings.
const (
	Running Ending = iota
	ByCancel
	ByAbort // a denial that ends the run
	ByStop
	ByRestart
)

func (e Ending) String() string {
	switch e {
	case ByCancel:
		return "the task was cancelled"
	case ByAbort:
		return "a denial ended the task"
	case ByRestart:
		return "the agent was restarted"
	case ByStop:
		return "the agent was stopped"
	}
	return fmt.Sprintf("ending %d", int(e))
}

// MaxMessage is the longest message of a task's error (requirement 1.6), in
// bytes, and so never more characters.
const MaxMessage = 4096

// Outcome turns an outcome into that of a prompt which was ended on purpose;
// one that was not stays as it is.
func (e Ending) Outcome(out task.Outcome, reason string) task.Outcome {
	why := &task.Error{Message: core.ClipTo(reason, MaxMessage)}
	switch e {
	case Running:
		return out
	case ByAbort:
		out.Status, why.Code = task.Blocked, "approval_denied"
	case ByRestart:
		out.Status, why.Code, why.Retryable = task.Failed, "agent_restarted", true
	default:
		out.Status, why.Code = task.Cancelled, "cancelled"
	}
	out.Error = why
	return out
}

// Failure is the outcome of a prompt that failed for a reason of ours.
func Failure(code, message string, retryable bool) task.Outcome {
	return task.Outcome{Status: task.Failed, Output: core.Raw(`{}`), Error: &task.Error{
		Code: code, Message: core.ClipTo(pipe.Text([]byte(message)), MaxMessage), Retryable: retryable,
	}}
}

// Understood is the judge's answer to a question as an agent is told it: no
// answer is a denial, and a yes has the arguments to act with.
func Understood(asked fleet.Event, ans fleet.ToolAnswer, err error) fleet.ToolAnswer {
	switch {
	case err != nil:
		return fleet.ToolAnswer{Decision: "deny", Reason: core.ClipTo("no decision: "+err.Error(), 1024)}
	case ans.Decision == "approve" && len(ans.Args) == 0:
		ans.Args = asked.Args
	case ans.Decision != "approve" && ans.Decision != "deny" && ans.Decision != "abort":
		return fleet.ToolAnswer{Decision: "deny", Reason: "no decision"}
	}
	return ans
}

// Died is the outcome of a prompt whose process ended so, in these words; one that ended
// well has none.
func Died(exit cell.Exit, message string) (out task.Outcome, failed bool) {
	switch {
	case exit.Limited():
		return Failure("limit_exceeded", message, false), true
	case exit.Signal != 0:
		return Failure("agent_killed", message, true), true
	}
	return out, false
}
