package face

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/health"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/presence"
	"swarmdeck/engine/swarm"
)

func tenants() []*Face {
	return []*Face{
		Of[swarm.Tenant]{
			Noun: "tenant", ID: "tenant_id",
			Columns: "TENANT:tenant_id STATE AGE:created_at,age",
			Wide:    "CREATED:created_at",
			Cells: Cells[swarm.Tenant]{
				"STATE": func(t *swarm.Tenant, at At) string {
					if at.Degraded != nil && at.Degraded(t.TenantID) {
						return "degraded"
					}
					return "ok"
				},
			},
		}.Face(),
		Of[swarm.Slots]{
			Says:    func(s *swarm.Slots, _, _ string) string { return fmt.Sprintf("%d tasks run at once", s.Slots) },
			Columns: "TENANT:tenant_id SLOTS:slots OF",
			Cells: Cells[swarm.Slots]{
				"OF": func(s *swarm.Slots, _ At) string {
					if s.Own {
						return "its own"
					}
					return "the engine"
				},
			},
		}.Face(),
		Of[health.Trouble]{
			Columns: "TENANT COMPONENT:component ABOUT:about REASON:reason COUNT:count SINCE:since,age",
			Cells: Cells[health.Trouble]{
				"TENANT": func(t *health.Trouble, _ At) string { return cmp.Or(t.Tenant, "(all)") },
			},
		}.Face(),
		Of[presence.Visitor]{
			Columns: "OPERATOR:name RIGHTS:role DOOR:door SINCE:since,age LOOKS_AT:approval_id",
		}.Face(),
		Of[operator.Operator]{
			Noun: "operator", ID: "name",
			Columns: "OPERATOR:name RIGHTS:role AGE:created_at,age GROUPS:groups,40 AWAY,40 PROOFS,60",
			Cells: Cells[operator.Operator]{
				"AWAY": func(o *operator.Operator, at At) string {
					if !o.AwayUntil.After(at.Now) {
						return ""
					}
					return o.Delegate + " stands in until " + Stamp(o.AwayUntil)
				},
				"PROOFS": func(o *operator.Operator, _ At) string { return o.Person() },
			},
		}.Face(),
	}
}
