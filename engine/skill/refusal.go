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

// refusal is a file below a source that was refused when it was last read.
type refusal struct {
	File     string             `json:"file"`
	Problems []document.Problem `json:"problems"`
}

func (r *registry) refusalKind() record.Kind[refusal] {
	return record.Kind[refusal]{
		Noun: "refused file", Subject: "skill.file", Bucket: "skill.refused", Quiet: true, Ledger: r.ledger, Follow: r.bad.Follow,
		ID:  func(b *refusal) string { return b.File },
		Key: func(_, file string) record.Key { return record.Hash(file) }, // paths may be longer than keys
	}
}

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
	known := r.bad.Of(by.Tenant)
	for _, file := range slices.Sorted(maps.Keys(b.byFile)) {
		same := known[file] != nil && slices.Equal(known[file].Problems, b.byFile[file])
		if !same || by.Kind != core.Engine {
			b.news = append(b.news, file)
		}
		if !same && covered(sources, file) {
			b.kept = append(b.kept, file)
		}
	}
	for _, file := range append(p.files, p.gone...) {
		if known[file] != nil && b.byFile[file] == nil && !slices.Contains(b.mended, file) {
			b.mended = append(b.mended, file)
		}
	}
	return b
}

// any tells whether there is anything to record.
func (b *refusals) any() bool { return len(b.news)+len(b.mended) > 0 }

// record audits what has changed, and keeps it.
func (b *refusals) record(tx *audit.Tx) error {
	of := b.r.bad.Of(b.tenant)
	for _, file := range b.news {
		now := &refusal{file, b.byFile[file]}
		event := record.Event{Type: "skill.refused", Detail: map[string]any{"problems": now.Problems}}
		if slices.Contains(b.kept, file) {
			if err := b.r.refused.Save(tx, event, of[file], now); err != nil {
				return err
			}
		} else if _, err := tx.Record(audit.Entry{Type: event.Type, Subject: "skill.file", ID: file, Detail: event.Detail}); err != nil {
			return err
		}
	}
	for _, file := range b.mended {
		if err := b.r.refused.Remove(tx, record.Event{Type: "skill.mended"}, of[file]); err != nil {
			return err
		}
	}
	return nil
}

// Problems are what is wrong with the files below a tenant's sources that were
// refused when they were last read.
func (r *registry) Problems(tenant string) (all []document.Problem) {
	of := r.bad.Of(tenant)
	for _, file := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[file].Problems...)
	}
	return all
}

// refusedGone are the refused files that are no more.
func (r *registry) refusedGone(tenant string) []string {
	files := slices.Collect(maps.Keys(r.bad.Of(tenant)))
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
