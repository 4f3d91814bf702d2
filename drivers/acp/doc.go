// Package acp runs agents that speak the Agent Client Protocol, version 1,
// over their standard input and output.
//
// What is asked of the operator's judgement passes the fleet's gate: each
// session/request_permission, and each file or terminal method that we serve.
// An approval is answered allow_once and never allow_always, which would move
// the decision into the agent for good. The protocol's permissions are
// cooperative: a call that an agent did not ask about is recorded as such, and
// a change of the agent's own permission mode is audited.
//
// What an agent says is data. Kinds of updates that this version does not know
// are kept as they came and never guessed; every message is bounded.
//
// An agent is one conversation: its tasks are prompts in one session, which is
// taken up again after a restart where the agent offers that. Its process
// starts with the first prompt and then stays.
package acp
