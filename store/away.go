package store

import (
	"fmt"
	"strings"
)

// AwayError says why a store that knows a tenant's name does not have the tenant: it
// has moved to another store, or a copy of it is on its way here and not whole. It is
// an ErrNoTenant.
type AwayError struct {
	Tenant string
	Moved  bool   // it is elsewhere; else it is on its way here
	Copy   string // names the copy
	Place  string // the other store, without a password
}

func (e *AwayError) Error() string {
	if e.Moved {
		return fmt.Sprintf("tenant %.80q has moved to %s", e.Tenant, e.Place)
	}
	return fmt.Sprintf("tenant %.80q is on its way here from %s, and not whole: run the copy again from there", e.Tenant, e.Place)
}

// Is makes it one of a tenant that is not there.
func (*AwayError) Is(target error) bool { return target == ErrNoTenant }

const (
	markMoved  = "moved"
	markComing = "coming"
)

// Mark is what a store keeps of it.
func (e *AwayError) Mark() string {
	state := markComing
	if e.Moved {
		state = markMoved
	}
	line := strings.NewReplacer("\n", " ", "\x00", " ")
	return state + "\n" + line.Replace(e.Copy) + "\n" + line.Replace(e.Place)
}

// ParseMark reads what Mark wrote. What it can't read is a tenant that has moved,
// nobody knows where: it must not be worked on.
func ParseMark(tenant, mark string) *AwayError {
	parts := strings.SplitN(mark, "\n", 3)
	if len(parts) != 3 || parts[0] != markMoved && parts[0] != markComing {
		return &AwayError{Tenant: tenant, Moved: true, Place: "an unknown place (its mark can't be read)"}
	}
	return &AwayError{Tenant: tenant, Moved: parts[0] == markMoved, Copy: parts[1], Place: parts[2]}
}

// Row names one record: a key of a bucket, or a counter.
type Row struct {
	Bucket  Bucket // of a counter ""
	Key     []byte
	Counter string
}
