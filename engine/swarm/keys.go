package swarm

import (
	"time"

	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Buckets of a tenant.
const (
	bTenant  store.Bucket = "tenant"
	bParked  store.Bucket = "parked"   // task seq → Outcome that waits at the result gate
	bReady   store.Bucket = "ready"    // lane, 255-priority, seq
	bDue     store.Bucket = "due"      // run-at µs, seq: to be gated (again) then
	bStartBy store.Bucket = "start.by" // deadline µs, seq: tasks that must have started by then
	bIdem    store.Bucket = "idem"     // sha256 of the key → seq and request digest
	bIdemOf  store.Bucket = "idem.of"  // task seq → key in idem
)

// countLease is the counter of a tenant that leases are numbered by.
const countLease = "lease"

var keyTenant = []byte("tenant")

func dueKey(at time.Time, seq uint64) record.Key { return record.Key(nil).Time(at).Seq(seq) }

func dueTime(key []byte) time.Time {
	p := record.Parts(key)
	return p.Time()
}
