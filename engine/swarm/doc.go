// Package swarm runs the tasks of a task.Table through runners that drivers
// provide: tenants, sessions, the priority queue with leases, retries and
// time-outs, budgets and the emergency stop.
//
// Everything that matters is in the store. What is held in memory (lanes,
// running work, pause flags) is rebuilt from it by New, and is changed only
// by commit hooks, so it never runs ahead of the disk.
//
// Lock order: no method calls the ledger while it holds Swarm.mu; commit
// hooks take Swarm.mu on the store's writer and must stay short.
package swarm
