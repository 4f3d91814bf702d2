package judge

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// PolicyTerms are what a tenant asks of an activation.
type PolicyTerms struct {
	TwoPersons bool   `json:"two_persons"`           // two operators must activate
	Jailed     bool   `json:"jailed"`                // a program that can't be jailed is refused
	LoosenedBy string `json:"loosened_by,omitempty"` // under two persons: the first who wants them looser
	// LoosenedPerson is who that is to the door, under whatever name.
	LoosenedPerson string `json:"loosened_person,omitempty"`
}

// Terms are the tenant's.
func (j *Judge) Terms(ctx context.Context, tenant string) (t PolicyTerms, err error) {
	err = j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		t, err = readTerms(tx.Tx)
		return err
	})
	return t, err
}

func readTerms(tx store.Tx) (t PolicyTerms, err error) {
	t, _, err = policyTerms.Get(tx, termsKey)
	return t, err
}

// SetTerms changes what activations need. Where two persons must activate, it
// takes two to ask for less as well.
func (j *Judge) SetTerms(ctx context.Context, by core.Caller, want PolicyTerms) (PolicyTerms, error) {
	if err := j.person(ctx, by, "terms", "change"); err != nil {
		return PolicyTerms{}, err
	}
	want.LoosenedBy, want.LoosenedPerson = "", ""
	err := j.change(ctx, by, "change the terms of policies", func(tx *audit.Tx) error {
		now, err := readTerms(tx.Tx)
		if err != nil {
			return err
		}
		looser := now.TwoPersons && !want.TwoPersons || now.Jailed && !want.Jailed
		if looser && now.TwoPersons && (now.LoosenedBy == "" || by.Is(now.LoosenedBy, now.LoosenedPerson)) {
			now.LoosenedBy, now.LoosenedPerson = by.Name, by.Person
			want = now
		}
		if err := policyTerms.Put(tx, termsKey, want); err != nil {
			return fmt.Errorf("write the terms of policies: %w", err)
		}
		if _, err := tx.Record(audit.Entry{
			Type: "policy.terms", Subject: "policy.terms", ID: tx.Tenant(), State: want, Detail: map[string]any{"by": by.Name},
		}); err != nil {
			return fmt.Errorf("audit the terms of policies: %w", err)
		}
		tx.Changed("policy.terms", tx.Tenant(), want)
		return nil
	})
	return want, err
}

type termsRecords struct{}

func (termsRecords) Subject() string { return "policy.terms" }

func (termsRecords) States(tx store.Tx, each func(string, any) error) error {
	t, told, err := policyTerms.Get(tx, termsKey)
	if err != nil || !told {
		return err
	}
	return each(tx.Tenant(), t)
}
