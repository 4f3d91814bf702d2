package skill

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// A kill between the end of a step and the end of its task must not turn a
// denial into a failure that a fallback may follow.
func TestHowAStepFailedIsKnownAfterAKill(t *testing.T) {
	for _, f := range []failure{
		{code: "approval_denied", message: "denied: no", denied: true, final: true},
		{code: "approval_denied", message: "denied: no", denied: true},
		{code: codeTimeout, message: "too slow"},
		{code: "exit_nonzero", message: "exit status 3"},
	} {
		stored := core.MustEncode(Execution{
			ExecutionID: "x", SkillName: "look", SkillVersion: "1.0.0", Step: "fetch/look", Status: StatusFailed,
			Error: f.message, ErrorCode: f.code, Denied: f.denied, Final: f.final,
		})
		var e Execution
		expect.No(t, core.DecodeStored(stored, &e))
		got := failureOf(&e)
		f.step, f.skill, f.execution = "fetch/look", "look@1.0.0", "x"
		expect.Is(t, *got, f)
	}
}
