package swarm

import "swarmdeck/store"

// Buckets of a tenant.
const (
	bTenant store.Bucket = "tenant"
	bParked store.Bucket = "parked"  // task seq → Outcome that waits at the result gate
	bIdem   store.Bucket = "idem"    // sha256 of the key → seq and request digest
	bIdemOf store.Bucket = "idem.of" // task seq → key in idem
)

// countLease is the counter of a tenant that leases are numbered by.
const countLease = "lease"

var keyTenant = []byte("tenant")
