package judge

import (
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// People knows the operators of tenants, by what is in memory: it is asked within
// transactions.
type People interface {
	// Whose tells which operator has a key, by its fingerprint, and since when; ""
	// for nobody.
	Whose(tenant, fingerprint string) (name string, since time.Time)
	// Known says whether there is an operator or a group of that name.
	Known(tenant, name string) bool
	// Belongs says whether an operator is the one of that name, or in the group.
	Belongs(tenant, operator, to string) bool
	// StandsIn names for whom an operator answers at a time what is for another, who is
	// away; "" for nobody.
	StandsIn(tenant, operator, to string, at time.Time) string
}

// whose tells whose a key is now, and since when.
func (j *Judge) whose(tenant, fingerprint string) (name string, since time.Time) {
	if j.people == nil {
		return "", since
	}
	return j.people.Whose(tenant, fingerprint)
}

// answerers are who may answer the approval: operators and groups; none is everyone
// whose role allows it.
func (a *Approval) answerers() []string {
	if a.EscalatedTo != "" {
		return []string{a.EscalatedTo}
	}
	return a.Approvers
}

// barred refuses who is none of those that the approval is for; nil is that they may
// answer it, put it off or hand it on, for whom they stand in, if for anybody. Nobody
// stands in for another at critical risk.
func (j *Judge) barred(by core.Caller, a *Approval, now time.Time) (standsFor string, denied error) {
	to := a.answerers()
	if len(to) == 0 {
		return "", nil
	}
	for _, name := range to {
		if j.people == nil && by.Name == name || j.people != nil && j.people.Belongs(a.TenantID, by.Name, name) {
			return "", nil
		}
	}
	for _, name := range to {
		if j.people == nil || a.Risk == Critical {
			break
		}
		if who := j.people.StandsIn(a.TenantID, by.Name, name, now); who != "" {
			return who, nil
		}
	}
	return "", core.Errorf(core.Denied, "approval %s: it is for %s to answer, not for %s", a.ApprovalID, strings.Join(to, " or "), by.Name).With("approvers", to)
}
