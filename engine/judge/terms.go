package judge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// PolicyTerms are what holds in a tenant whichever policy rules.
type PolicyTerms struct {
	TwoPersons bool     `json:"two_persons"`          // two operators must activate
	Jailed     bool     `json:"jailed"`               // a program that can't be jailed is refused
	FloorsOff  []string `json:"floors_off,omitempty"` // ids of the base's floors that don't hold, sorted
	Sign       Sign     `json:"sign,omitempty"`       // which answers need a signature; "" is SignOff
	// Loosened is the first of two who want less than what holds.
	Loosened *Loosening `json:"loosened,omitempty"`
}

// Loosening is what one person wants, until another wants it too.
type Loosening struct {
	By     string      `json:"by"`
	Person string      `json:"person,omitempty"` // who that is, under whatever name
	At     time.Time   `json:"at"`
	To     PolicyTerms `json:"to"`
}

// looser says whether terms ask for less than others did.
func (t *PolicyTerms) looser(before *PolicyTerms) bool {
	return before.TwoPersons && !t.TwoPersons || before.Jailed && !t.Jailed || t.lowers(before)
}

// lowers says whether a floor that held does no longer, or less has to be signed.
func (t *PolicyTerms) lowers(before *PolicyTerms) bool {
	grade := func(s Sign) int { return slices.Index(Signs(), cmp.Or(s, SignOff)) }
	return grade(t.Sign) < grade(before.Sign) || slices.ContainsFunc(t.FloorsOff, func(id string) bool { return !slices.Contains(before.FloorsOff, id) })
}

// Floors are the ids of the floors that can be switched off, sorted.
func (j *Judge) Floors() []string {
	ids := map[string]bool{}
	for _, of := range j.table().held {
		for _, r := range of {
			ids[r.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
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

// SetTerms changes what holds whichever policy rules. Where two persons must
// activate, two must want less; and two must want a floor off, wherever it is: that
// is an action at critical risk. The first of them leaves the terms as they are.
func (j *Judge) SetTerms(ctx context.Context, by core.Caller, want PolicyTerms) (PolicyTerms, error) {
	if err := j.operator(ctx, by, "policy", "terms", "change it"); err != nil {
		return PolicyTerms{}, err
	}
	want.Loosened = nil
	want.FloorsOff = slices.Compact(slices.Sorted(slices.Values(want.FloorsOff)))
	if want.Sign == SignOff {
		want.Sign = ""
	}
	if want.Sign != "" && !slices.Contains(Signs(), want.Sign) {
		return PolicyTerms{}, core.Invalid("sign", string(want.Sign), list(Signs()))
	}
	floors := j.Floors()
	for _, id := range want.FloorsOff {
		if !slices.Contains(floors, id) {
			return PolicyTerms{}, core.Invalid("floors", id, strings.Join(floors, ", "))
		}
	}
	var denied error
	err := j.change(ctx, by, "change the terms of policies", func(tx *audit.Tx) error {
		now, err := readTerms(tx.Tx)
		if err != nil {
			return err
		}
		detail := map[string]any{"by": by.Name, "proof": by.Proof}
		if first := now.Loosened; want.looser(&now) && (now.TwoPersons || want.lowers(&now)) {
			switch {
			case first == nil || by.Is(first.By, first.Person) || digestOf(core.MustEncode(first.To)) != digestOf(core.MustEncode(want)):
				now.Loosened = &Loosening{By: by.Name, Person: by.Person, At: tx.Now(), To: want}
				want = now
			case want.lowers(&now) && by.Known.After(first.At):
				denied = core.Errorf(core.Denied, "policy terms: who wants a floor off, or less signed, has to be known before the first wanted it; %s is %s since %s", by.Proof, by.Name, clock(by.Known))
				return denied
			default:
				detail["first"] = first
			}
		}
		if err := policyTerms.Put(tx, termsKey, want); err != nil {
			return fmt.Errorf("write the terms of policies: %w", err)
		}
		if want.lowers(&now) {
			detail["risk"] = Critical
		}
		if _, err := tx.Record(audit.Entry{Type: "policy.terms", Subject: "policy.terms", ID: tx.Tenant(), State: want, Detail: detail}); err != nil {
			return fmt.Errorf("audit the terms of policies: %w", err)
		}
		tx.Changed("policy.terms", tx.Tenant())
		tenant := tx.Tenant()
		tx.OnCommit(func() { j.rest(tenant, j.rulings.change(tenant, func(*ruling) *ruling { return nil })) })
		return nil
	})
	if denied != nil {
		return PolicyTerms{}, j.ledger.Refuse(ctx, by, audit.Entry{Type: "policy.refused", Subject: "policy", ID: "terms"}, denied)
	}
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
