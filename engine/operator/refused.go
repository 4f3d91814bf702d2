package operator

import (
	"context"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

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
