// Package exec runs local commands: as exec.run tasks (Runner) and as agents
// that speak JSON lines (Runtime). Both stand on one cell.Supervisor, which owns
// every process they start.
//
// What the supervisor promises, on Linux:
//   - each run has its own process group and a mark that all its descendants
//     inherit, so that a run's processes can be found whatever they did to
//     leave it (setsid, a double fork, an emptied environment);
//   - Stop ends with none of them left, and each one reaped;
//   - Pause returns when every thread of every one of them has stopped;
//   - if the engine dies, the kernel kills the run's first process, and Sweep
//     kills the rest when the engine starts again.
//
// It is no sandbox: a command runs with the engine's own user and can do what
// that user can. The limits keep accidents small; the judge keeps intents in
// check.
package exec
