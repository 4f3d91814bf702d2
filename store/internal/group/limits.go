package group

import (
	"errors"
	"fmt"
)

// Limits of names, keys and values, in bytes; see store.
const (
	MaxName  = 128
	MaxKey   = 4 << 10
	MaxValue = 64 << 20
)

// MaxGroup bounds one commit when ever more callers join it.
const MaxGroup = 4096

// Counters is the name of the bucket that holds a tenant's counters. Names that
// begin with "_" are the store's own.
const Counters = "_counters"

// Errors of transactions; store tells of those that its callers branch on.
var (
	ErrOver     = errors.New("transaction is over")
	ErrCorrupt  = errors.New("record is damaged (checksum mismatch)")
	ErrReadOnly = errors.New("data file is open read-only")
	errScanning = errors.New("no writing inside a scan")
)

// CheckTenant refuses what can't be a tenant's id.
func CheckTenant(id string) error {
	if id == "" || len(id) > MaxName {
		return fmt.Errorf("tenant %.40q: want 1-%d bytes", id, MaxName)
	}
	return nil
}

// CheckBucket refuses what can't be the name of a caller's bucket.
func CheckBucket[B ~string](b B) error {
	if b == "" || len(b) > MaxName || b[0] == '_' {
		return fmt.Errorf("bucket %.40q: want 1-%d bytes, not beginning with _", string(b), MaxName)
	}
	return nil
}

func checkKey[B ~string](b B, key []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("bucket %s: key of %d bytes; want 1-%d", b, len(key), MaxKey)
	}
	return nil
}
