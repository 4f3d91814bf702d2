package skill

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// maxSources bounds what a tenant's skills are read from.
const maxSources = 1000

// covers tells whether a path is the source or below it.
func (s Source) covers(path string) bool {
	return path == s.Path || strings.HasPrefix(path, strings.TrimSuffix(s.Path, string(filepath.Separator))+string(filepath.Separator))
}

func covered(sources []Source, path string) bool {
	return slices.ContainsFunc(sources, func(s Source) bool { return s.covers(path) })
}

// newSources are the paths of a load that gave a skill and are not remembered.
func (r *registry) newSources(tenant string, p *plan, read []origin) []string {
	var paths []string
	for _, o := range read {
		if o.path != "" && len(o.problems) == 0 && !slices.Contains(paths, o.path) {
			paths = append(paths, o.path)
		}
	}
	for _, s := range r.Sources(tenant) {
		paths = slices.DeleteFunc(paths, func(path string) bool { return path == s.Path })
	}
	return paths
}

func (r *registry) addSources(tx *audit.Tx, paths []string) error {
	for _, path := range paths {
		if err := r.kept.Save(tx, record.Event{Type: "skill.source.added"}, nil, &Source{Path: path}); err != nil {
			return err
		}
	}
	return nil
}

// Forget stops reading skills from a file or directory that was loaded. What
// was loaded from it stays.
func (r *registry) Forget(ctx context.Context, by core.Caller, path string) (Source, error) {
	release, err := r.write(ctx)
	if err != nil {
		return Source{}, err
	}
	defer release()
	path = filepath.Clean(path)
	left := r.Sources(by.Tenant)
	at := slices.IndexFunc(left, func(s Source) bool { return s.Path == path })
	if at < 0 {
		return Source{}, core.Missing("source", path)
	}
	gone := left[at]
	left = slices.Delete(left, at, at+1)
	err = r.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := r.kept.Remove(tx, record.Event{Type: "skill.source.removed"}, &gone); err != nil {
			return err
		}
		b := &refusals{r: r, tenant: by.Tenant}
		for _, p := range r.Problems(by.Tenant) {
			if !covered(left, p.File) && !slices.Contains(b.mended, p.File) {
				b.mended = append(b.mended, p.File)
			}
		}
		return b.record(tx)
	})
	if err != nil {
		return Source{}, fmt.Errorf("forget the source %s: %w", path, err)
	}
	return gone, nil
}

// ring fills a one-slot bell.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
