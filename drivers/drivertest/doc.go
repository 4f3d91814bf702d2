// Package drivertest is the conformance suite of agent runtimes: what the
// fleet relies on, whatever an agent's protocol is.
//
// A driver's test gives Run a runtime and an actor: an agent of that runtime
// that performs the acts written in its prompt, one on each line (see
// Perform). The actor is a real program in a process of its own, usually the
// test binary started again.
package drivertest
