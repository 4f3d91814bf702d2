package swarm

import (
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// What is kept of a tenant beside its tasks.
const (
	tenants    record.Rows[Tenant]       = "tenant"  // at tenantKey
	parked     record.Rows[task.Outcome] = "parked"  // number of a task: what waits at the result gate
	requests   record.Rows[request]      = "idem"    // hash of an idempotency key
	requestsOf record.Rows[[]byte]       = "idem.of" // number of a task → key in requests
)

// countLease is the counter of a tenant that leases are numbered by.
const countLease = "lease"

var tenantKey = record.Key("tenant")
