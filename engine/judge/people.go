package judge

import (
	"slices"
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
// answer it, put it off or hand it on.
func (j *Judge) barred(by core.Caller, a *Approval) error {
	to := a.answerers()
	if len(to) == 0 || slices.ContainsFunc(to, func(name string) bool {
		if j.people == nil {
			return by.Name == name
		}
		return j.people.Belongs(a.TenantID, by.Name, name)
	}) {
		return nil
	}
	return core.Errorf(core.Denied, "approval %s: it is for %s to answer, not for %s", a.ApprovalID, strings.Join(to, " or "), by.Name).With("approvers", to)
}
