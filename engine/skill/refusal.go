package skill

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
)

// refusals are what a load found of files that it refused, and of files that
// were refused before.
type refusals struct {
	r      *registry
	tenant string
	byFile map[string][]document.Problem
	news   []string // files whose refusal is to be audited
	kept   []string // those of them below a source: they are read again
	mended []string // refused before, and now taken or gone
}

// refusals of a plan. A file that is refused for the same reasons as the last
// time is not audited again unless someone asked.
func (r *registry) refusals(by core.Caller, p *plan) *refusals {
	b := &refusals{r: r, tenant: by.Tenant, byFile: map[string][]document.Problem{}}
	for _, problem := range p.refused {
		b.byFile[problem.File] = append(b.byFile[problem.File], problem)
	}
	sources := r.Sources(by.Tenant)
	for _, path := range p.paths {
		sources = append(sources, Source{Path: path})
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, file := range slices.Sorted(maps.Keys(b.byFile)) {
		same := slices.Equal(r.bad[by.Tenant][file], b.byFile[file])
		if !same || by.Kind != core.Engine {
			b.news = append(b.news, file)
		}
		if !same && covered(sources, file) {
			b.kept = append(b.kept, file)
		}
	}
	for _, file := range append(p.files, p.gone...) {
		if r.bad[by.Tenant][file] != nil && b.byFile[file] == nil && !slices.Contains(b.mended, file) {
			b.mended = append(b.mended, file)
		}
	}
	return b
}

// any tells whether there is anything to record.
func (b *refusals) any() bool { return len(b.news)+len(b.mended) > 0 }

// record audits what has changed, and keeps it.
func (b *refusals) record(tx *audit.Tx) error {
	for _, file := range b.news {
		_, err := tx.Record(audit.Entry{
			Type: "skill.refused", Subject: "skill.file", ID: file, Detail: map[string]any{"problems": b.byFile[file]},
		})
		if err != nil {
			return err
		}
	}
	for _, file := range b.kept {
		if err := problems.Put(tx, record.Hash(file), b.byFile[file]); err != nil {
			return err
		}
	}
	for _, file := range b.mended {
		if _, err := tx.Record(audit.Entry{Type: "skill.mended", Subject: "skill.file", ID: file}); err != nil {
			return err
		}
		if err := problems.Delete(tx, record.Hash(file)); err != nil {
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
	bad := maps.Clone(b.r.bad[b.tenant])
	if bad == nil {
		bad = map[string][]document.Problem{}
	}
	for _, file := range b.kept {
		bad[file] = b.byFile[file]
	}
	for _, file := range b.mended {
		delete(bad, file)
	}
	b.r.bad[b.tenant] = bad
}

// Problems are what is wrong with the files below a tenant's sources that were
// refused when they were last read.
func (r *registry) Problems(tenant string) []document.Problem {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []document.Problem
	for _, file := range slices.Sorted(maps.Keys(r.bad[tenant])) {
		all = append(all, r.bad[tenant][file]...)
	}
	return all
}

// refusedGone are the refused files that are no more.
func (r *registry) refusedGone(tenant string) []string {
	r.mu.RLock()
	files := slices.Collect(maps.Keys(r.bad[tenant]))
	r.mu.RUnlock()
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
