package fleet

import (
	"swarmdeck/engine/audit"
	"swarmdeck/store"
)

// Auditables are the records that reconcile compares.
func (f *Fleet) Auditables() []audit.Auditable {
	return []audit.Auditable{auditedAgents{}, auditedProjects{}, auditedRoles{}}
}

type auditedAgents struct{}

func (auditedAgents) Subject() string { return "agent" }

func (auditedAgents) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := eachAgent(tx, func(a *Agent) {
		if bad == nil {
			bad = each(a.Name, stateOf(a))
		}
	})
	if err == nil {
		err = bad
	}
	return err
}

type auditedProjects struct{}

func (auditedProjects) Subject() string { return "project" }

func (auditedProjects) States(tx store.Tx, each func(string, any) error) error {
	all, err := records[Project](tx, bProject, nil, nil)
	for _, p := range all {
		if err := each(p.ID, p); err != nil {
			return err
		}
	}
	return err
}

type auditedRoles struct{}

func (auditedRoles) Subject() string { return "role" }

func (auditedRoles) States(tx store.Tx, each func(string, any) error) error {
	all, err := records[Role](tx, bRole, nil, nil)
	for _, r := range all {
		if err := each(r.ID, r); err != nil {
			return err
		}
	}
	return err
}
