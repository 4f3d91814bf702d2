// Package swarm runs the tasks of a task.Table through runners that drivers
// provide: it dispatches, claims, leases, tends, settles and retries them. What
// they wait for is kept by the packages queue, session, budget and estop, which
// know nothing of tasks but what they ask of it.
//
// Everything that matters is in the store. What is held in memory (leases,
// running work, pause flags) is rebuilt from it by New, and is changed only
// by commit hooks, so it never runs ahead of the disk.
//
// Lock order: no method calls the ledger while it holds Swarm.mu; commit
// hooks take Swarm.mu on the store's writer and must stay short.
package swarm
