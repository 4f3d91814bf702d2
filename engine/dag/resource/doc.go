// Package resource looks after what agents work on, the resources of their
// record (model 4): it attaches and detaches them, probes them, keeps their
// state and makes it again, and forks an agent together with them.
//
// What is done outside of the record is done by a driver, and as an intent: it
// is recorded before it begins, and what came of it when it is done. Both are
// the controller's, which tries again after a failure or a crash. Only what was
// attached here is ever touched: a record from elsewhere may name any path.
//
// # The state at an event
//
// Of a resource that an agent may write, a state is kept before each of its
// tool calls and at the end of each run, unless nothing has changed. So the
// state at an event is the one kept before it when no call lies between, else
// the one kept after it when no call lies between; of what agents do outside of
// calls nothing is known. A fork says which it got.
//
// # A fork's conversation
//
// The protocols of agents can take up a conversation, or fork it, at its end
// only; none says which of its turns belongs to an event. So a fork's
// conversation is always made again from the record: before its first prompt
// the new agent is given what was said and done up to the event, and told that
// this is a record. It is said wherever the fork is shown: continued from
// record. What an agent knew beside that, such as its reasoning, is not in it.
package resource
