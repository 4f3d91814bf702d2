package skill

import (
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// refusals are the files that a load read and those of them that it refused.
type refusals struct {
	r      *registry
	tenant string
	read   []string
	byFile map[string][]document.Problem
	news   []string // files whose refusal is to be audited
}

// refusals of a plan. A file that is refused for the same reasons as the last
// time is not audited again unless someone asked.
func (r *registry) refusals(by core.Caller, p *plan) *refusals {
	bad := &refusals{r: r, tenant: by.Tenant, read: p.files, byFile: map[string][]document.Problem{}}
	for _, problem := range p.refused {
		bad.byFile[problem.File] = append(bad.byFile[problem.File], problem)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for file, problems := range bad.byFile {
		if by.Kind != core.Engine || !slices.Equal(r.bad[by.Tenant][file], problems) {
			bad.news = append(bad.news, file)
		}
	}
	slices.Sort(bad.news)
	return bad
}

// record audits the refusals.
func (b *refusals) record(tx *audit.Tx) error {
	for _, file := range b.news {
		_, err := tx.Record(audit.Entry{
			Type: "skill.refused", Subject: "skill.file", ID: file, Detail: map[string]any{"problems": b.byFile[file]},
		})
		if err != nil {
			return err
		}
	}
	tx.OnCommit(b.keep)
	return nil
}

// keep makes the refusals what Problems tells.
func (b *refusals) keep() {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	bad := b.r.bad[b.tenant]
	if bad == nil {
		bad = map[string][]document.Problem{}
		b.r.bad[b.tenant] = bad
	}
	for _, file := range b.read {
		if problems := b.byFile[file]; problems != nil {
			bad[file] = problems
		} else {
			delete(bad, file)
		}
	}
}
