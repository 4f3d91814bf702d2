package tree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Bounds of what is known of files that several agents change.
const (
	maxOverlap = 5      // files that are named of two agents
	maxTouched = 10_000 // files that are remembered of an agent
	maxMet     = 1000   // files of which two agents were told
	// maxAcquainted is how many trees are looked at beside the one that was asked for.
	maxAcquainted = 16
)

// Meeting is that two agents have changed the same files.
type Meeting struct {
	Agent string
	Other string
	Files []string
}

// Overlap is a meeting in words, as lists show it.
func (m *Meeting) String() string {
	text := m.Other + ": " + strings.Join(m.Files[:min(len(m.Files), maxOverlap)], " ")
	if over := len(m.Files) - maxOverlap; over > 0 {
		text += fmt.Sprintf(" and %d more", over)
	}
	return text
}

// note remembers which files an agent has changed, for the others.
func (s *Trees) note(t Tree, changes []Change) {
	paths := map[string]bool{}
	for _, c := range changes[:min(len(changes), maxTouched)] {
		paths[c.Path] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files(t.TenantID)[t.Agent] = paths
}

// files are what each agent of a tenant has changed; s.mu is held.
func (s *Trees) files(tenant string) map[string]map[string]bool {
	if s.touched[tenant] == nil {
		s.touched[tenant] = map[string]map[string]bool{}
	}
	return s.touched[tenant]
}

// meetings are the agents that changed the same files, by name, as far as it is known
// what they changed.
func (s *Trees) meetings(t Tree) (all []Meeting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.touched[t.TenantID][t.Agent]
	for agent, other := range s.trees.Of(t.TenantID) {
		if agent == t.Agent || other.Source != t.Source || other.Phase == Leaving {
			continue
		}
		m := Meeting{Agent: t.Agent, Other: agent}
		for path := range s.touched[t.TenantID][agent] {
			if mine[path] {
				m.Files = append(m.Files, path)
			}
		}
		if len(m.Files) > 0 {
			slices.Sort(m.Files)
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Meeting) int { return strings.Compare(a.Other, b.Other) })
	return all
}

// acquaint looks at trees of the same source that were not looked at since the engine
// began: a line without an engine knows of none. What can't be looked at is passed over.
func (s *Trees) acquaint(ctx context.Context, t Tree) {
	var unknown []Tree
	s.mu.Lock()
	for agent, other := range s.trees.Of(t.TenantID) {
		if _, known := s.files(t.TenantID)[agent]; !known && agent != t.Agent && other.Source == t.Source && other.Phase == Ready {
			unknown = append(unknown, *other)
		}
	}
	s.mu.Unlock()
	for _, other := range unknown[:min(len(unknown), maxAcquainted)] {
		_ = s.look(ctx, other)
	}
}

// overlaps says who else changed the same files.
func (s *Trees) overlaps(t Tree) (all []string) {
	for _, m := range s.meetings(t) {
		all = append(all, m.String())
	}
	return all
}

// Wrote notes files that an agent has just written, by their paths. Where another one
// changed the same both trees are looked at, since what git ignores counts for
// nothing, and both are told. looked says that overlap is what is so now.
func (s *Trees) Wrote(ctx context.Context, tenant, agent string, paths []string) (overlap []string, looked bool, err error) {
	t, ok := s.works(tenant, agent)
	if !ok {
		return nil, false, nil
	}
	for _, other := range s.meets(t, paths) {
		o, ok := s.works(tenant, other)
		if !ok {
			continue
		}
		if !looked {
			if err := s.look(ctx, t); err != nil {
				return nil, false, err
			}
		}
		looked = true
		if err := s.look(ctx, o); err != nil {
			return nil, false, err
		}
	}
	if !looked {
		return nil, false, nil
	}
	return s.overlaps(t), true, s.tell(ctx, t)
}

// meets remembers files that an agent wrote, and finds those who have changed one of
// them that it had not changed before.
func (s *Trees) meets(t Tree, paths []string) (others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.files(t.TenantID)
	if all[t.Agent] == nil {
		all[t.Agent] = map[string]bool{}
	}
	mine := all[t.Agent]
	for _, path := range paths {
		path, err := filepath.Rel(t.Path, path)
		if err != nil || path == ".git" || strings.HasPrefix(path, ".git/") || path == ".." || strings.HasPrefix(path, "../") || mine[path] || len(mine) >= maxTouched {
			continue
		}
		mine[path] = true
		for other, theirs := range all {
			if other != t.Agent && theirs[path] && !slices.Contains(others, other) {
				if o := s.trees.Get(t.TenantID, other); o != nil && o.Source == t.Source {
					others = append(others, other)
				}
			}
		}
	}
	slices.Sort(others)
	return others
}

// look finds what an agent has changed.
func (s *Trees) look(ctx context.Context, t Tree) error {
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return err
	}
	changes, err := s.opt.Driver.Changes(ctx, t, t.Since, now.Commit)
	if err == nil {
		s.note(t, changes)
	}
	return err
}

// tell tells both agents of the files that they changed and were not told of.
func (s *Trees) tell(ctx context.Context, t Tree) (err error) {
	for _, m := range s.meetings(t) {
		if m.Other < m.Agent { // one of the two keeps what they were told
			m.Agent, m.Other = m.Other, m.Agent
		}
		known := s.Review(t.TenantID, m.Agent).Met[m.Other]
		m.Files = slices.DeleteFunc(m.Files, func(path string) bool { return slices.Contains(known, path) })
		if len(m.Files) == 0 || len(known) >= maxMet || s.opt.Told == nil {
			continue
		}
		_, bad := s.amend(ctx, core.Self(t.TenantID, component), m.Agent, "review.overlap", func(tx *audit.Tx, r *Review) error {
			met := map[string][]string{}
			for other, files := range r.Met {
				if _, there := s.Has(t.TenantID, other); there {
					met[other] = files
				}
			}
			met[m.Other] = slices.Concat(met[m.Other], m.Files)
			r.Met = met
			return errors.Join(s.opt.Told(tx, m), s.opt.Told(tx, Meeting{Agent: m.Other, Other: m.Agent, Files: m.Files}))
		})
		err = errors.Join(err, bad)
	}
	return err
}

// Ended notes what an agent has changed when a task of its has ended, tells those who
// work on the same files, and says who they are.
func (s *Trees) Ended(ctx context.Context, tenant, agent string) (overlap []string, err error) {
	t, ok := s.works(tenant, agent)
	if !ok {
		return nil, nil
	}
	if err := s.look(ctx, t); err != nil {
		return nil, err
	}
	return s.overlaps(t), s.tell(ctx, t)
}
