// Package control brings the world to what the record says it should be
// (model 4, spec and status). An intent is a desired state: one step or several,
// each an action word with its arguments. What is then seen is an observation.
// Both are events of the record, and neither is ever changed.
//
// An intent is a run of its own, whose run_id is the intent's id:
//
//	run_started   someone wants something
//	tool_call     a step, server "controller", tool its action: the intent proper
//	tool_result   what came of that step: the observation
//	interruption  the engine died, the intent was withdrawn or refused
//	tool_call     "undo", requested by the call of the step that is taken back
//	run_finished  it is over
//
// An Effect looks, acts and takes back; drivers fill it. One goroutine works on an
// intent, and looks before it acts, each time: what it finds decides, not what it
// remembers (level-based). Before an Effect may touch anything, it is on disk that
// the step is tried, and in which epoch of the data file: only the program that has
// the file open can write, so a try of an earlier epoch is over, whatever it did.
//
// A step that does not come about is tried again with back-off, a bounded number
// of times, also when each try kills the process. Then, or when the intent is
// withdrawn, the steps that began are taken back in reverse order. A step that
// can't be taken back leaves the intent stuck: a person says what happens next.
//
// An effect happens at least once, and more than once only as far as its Probe
// and its Key can't tell that it happened: Act is given the same Key each time.
package control
