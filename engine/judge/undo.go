package judge

import "slices"

// Whether an action can be taken back.
const (
	undoYes     = "yes"
	undoPartly  = "partly"
	undoNo      = "no"
	undoUnknown = "unknown"
)

// undos say, by what an action does, the gravest first, whether it can be taken back
// and how.
var undos = []struct{ effect, can, how string }{
	{effectHavoc, undoNo, "A system, a disk or a home would be gone."},
	{"spend", undoNo, "What is spent is gone, unless its receiver refunds it."},
	{"publish", undoNo, "Others have it then. It can be withdrawn, not unsent."},
	{effectSecret, undoNo, "Who has read a secret has it. Replace the secret afterwards."},
	{"destroy", undoNo, "What it deletes, overwrites or stops is gone, unless it is kept elsewhere: a commit, a backup, a snapshot."},
	{"escalate", undoPartly, "Rights can be taken away again; what was done with them stays."},
	{effectOpaque, undoUnknown, "What it does can't be told from here."},
	{"network", undoPartly, "What is sent stays sent."},
	{effectWrite, undoPartly, "What is written can be written back: the change is below, or the work tree has it (git diff)."},
	{effectRead, undoYes, "It changes nothing."},
}

// undo says whether an action can be taken back, and how.
func undo(gate Gate, a *Action, effects []string) (can, how string) {
	switch gate {
	case GateNet:
		return undoPartly, "Close it again with egress deny; what was sent stays sent."
	case GateBudget:
		return undoPartly, "Lower it again with budget set; what was spent meanwhile is spent."
	case GateAgent:
		return undoNo, "Its log and what it keeps go with it. The audit log stays."
	case GateGrant:
		return undoPartly, "grant revoke ends it; what it let pass until then stays. Each use is recorded."
	case GateQuestion:
		if _, ok := a.called(); !ok {
			return undoNo, "Who asks knows then what it is told. Nothing else is approved by it."
		}
	case GateResult:
		return undoPartly, "The task can be dispatched again with task retry; what waits for this result goes on with it."
	}
	switch a.Kind {
	case "tree.merge", "tree.undo":
		return undoYes, "merge undo takes it back until the base moves on or a remote has it; the work stays in the tree."
	case "tree.push":
		return undoNo, "Others have it then. It can be withdrawn, not unsent."
	case "tree.setup":
		return undoYes, "It runs in a cell, in the agent's own tree, which goes with the agent."
	case "tree.check":
		return undoYes, "It runs in a cell, on a copy that goes afterwards."
	}
	for _, u := range undos {
		if slices.Contains(effects, u.effect) {
			return u.can, u.how
		}
	}
	if a.Kind == "agent.prompt" || a.Kind == "plan.decompose" {
		return undoPartly, "task cancel ends it; what was done until then stays. Each step asks for itself."
	}
	return undoUnknown, "What it does is on no list. It can do what the walls around it allow."
}
