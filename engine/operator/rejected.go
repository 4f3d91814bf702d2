package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Rejected is how many connections a door turned away in some time, and whose
// they were as far as that is known.
type Rejected struct {
	Since   time.Time      `json:"since"`
	Until   time.Time      `json:"until"`
	Reasons map[string]int `json:"reasons"`         // connections by reason
	From    map[string]int `json:"from"`            // connections by address, the first few
	Keys    []string       `json:"keys,omitempty"`  // fingerprints that nobody has, the first few
	Others  int            `json:"others,omitzero"` // connections of further addresses
}

// maxTold bounds the tenants whose log is told of strangers.
const maxTold = 16

// RecordRejected records strangers in the log of every tenant that somebody may enter
// by that door: whom they were after can't be known. Where nobody may, it is
// the first tenant's.
func (o *Operators) RecordRejected(ctx context.Context, door core.Door, t Rejected) error {
	var errs []error
	for _, tenant := range o.entered() {
		by := core.Caller{Tenant: tenant, Name: string(door), Kind: core.Engine, Door: door}
		if err := o.ledger.Update(context.WithoutCancel(ctx), by, func(tx *audit.Tx) error {
			_, err := tx.Record(audit.Entry{Type: "door.refused", Subject: "door", ID: string(door), Detail: t})
			return err
		}); err != nil {
			errs = append(errs, fmt.Errorf("audit who was turned away, in %s: %w", tenant, err))
		}
	}
	return errors.Join(errs...)
}

// entered lists the tenants that have operators, or the first of all.
func (o *Operators) entered() []string {
	tenants := map[string]bool{}
	o.state.Look(func() {
		for _, all := range o.grants {
			for _, g := range all {
				tenants[g.Tenant] = true
			}
		}
	})
	told := slices.Sorted(maps.Keys(tenants))
	if len(told) == 0 {
		all, err := o.tenants(context.Background())
		if err == nil && len(all) > 0 {
			told = all[:1]
		}
	}
	return told[:min(len(told), maxTold)]
}

// Again is how often a known operator was refused, in some time, what the log
// says already that they were.
type Again struct {
	Since   time.Time      `json:"since"`
	Until   time.Time      `json:"until"`
	Reasons map[string]int `json:"reasons"`         // refusals by reason, the first few
	Others  int            `json:"others,omitzero"` // refusals for further reasons
}

// Refused records that a known operator was refused something by their role.
func (o *Operators) Refused(ctx context.Context, by core.Caller, cause error) error {
	return o.ledger.Refuse(ctx, by, refused(by, nil), cause)
}

// RefusedAgain records many refusals as one event.
func (o *Operators) RefusedAgain(ctx context.Context, by core.Caller, a Again) error {
	return o.ledger.Refuse(ctx, by, refused(by, a), nil)
}

func refused(by core.Caller, detail any) audit.Entry {
	return audit.Entry{Type: "operator.refused", Subject: "operator", ID: by.Name, Detail: detail}
}
