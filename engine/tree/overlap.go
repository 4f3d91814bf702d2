package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// Bounds of what is known of files that several agents change.
const (
	maxOverlap = 5      // files that are named of two agents
	maxSame    = 3      // symbols that are named of a file
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
	// Same are the functions and the like that both changed, by file. Apart are the files
	// in which each changed others. Of the rest it is not known.
	Same  map[string][]string
	Apart map[string]bool
}

// rank is how urgent a file is: 0 most.
func (m *Meeting) rank(file string) int {
	switch {
	case len(m.Same[file]) > 0:
		return 0
	case m.Apart[file]:
		return 2
	}
	return 1
}

// Overlap is a meeting in words, as lists show it, the most urgent files first.
func (m *Meeting) String() string {
	files := slices.Clone(m.Files)
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(m.rank(a), m.rank(b)) })
	text := m.Other + ":"
	for _, file := range files[:min(len(files), maxOverlap)] {
		text += " " + file
		switch same := m.Same[file]; {
		case len(same) > 0:
			text += " (" + strings.Join(same[:min(len(same), maxSame)], ", ") + ")"
		case m.Apart[file]:
			text += " (other symbols)"
		}
	}
	if over := len(m.Files) - maxOverlap; over > 0 {
		text += fmt.Sprintf(" and %d more", over)
	}
	return text
}

// touched is what an agent has changed, as far as is known.
type touched struct {
	since, state string // between which that is so; "" where it is only known what it wrote
	paths        map[string]bool
	symbols      map[string][]string // by file, of those that were asked for
}

// note remembers which files an agent has changed, for the others.
func (s *Trees) note(t Tree, state string, changes []Change) {
	paths := map[string]bool{}
	for _, c := range changes[:min(len(changes), maxTouched)] {
		paths[c.Path] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.files(t.TenantID)
	symbols := map[string][]string{}
	if was := all[t.Agent]; was != nil && was.since == t.Since && was.state == state {
		symbols = was.symbols
	}
	all[t.Agent] = &touched{t.Since, state, paths, symbols}
}

// files are what each agent of a tenant has changed; s.mu is held.
func (s *Trees) files(tenant string) map[string]*touched {
	if s.touched[tenant] == nil {
		s.touched[tenant] = map[string]*touched{}
	}
	return s.touched[tenant]
}

// meetings are the agents that changed the same files, by name, as far as it is known
// what they changed.
func (s *Trees) meetings(t Tree) (all []Meeting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.touched[t.TenantID][t.Agent]
	if mine == nil {
		return nil
	}
	for agent, other := range s.trees.Of(t.TenantID) {
		if agent == t.Agent || other.Source != t.Source || other.Phase == Leaving {
			continue
		}
		m := Meeting{Agent: t.Agent, Other: agent}
		if theirs := s.touched[t.TenantID][agent]; theirs != nil {
			for path := range theirs.paths {
				if mine.paths[path] {
					m.Files = append(m.Files, path)
				}
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

// marks are what is kept of a file that two agents were told of.
func (m *Meeting) marks(file string) []string {
	all := []string{file}
	for _, symbol := range m.Same[file] {
		all = append(all, file+" "+symbol)
	}
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
func (s *Trees) overlaps(ctx context.Context, t Tree) []string {
	met := s.compared(ctx, t)
	slices.SortStableFunc(met, func(a, b Meeting) int { return cmp.Compare(a.urgent(), b.urgent()) })
	return core.Map(met, func(m Meeting) string { return m.String() })
}

// urgent is the rank of its most urgent file.
func (m *Meeting) urgent() int {
	least := 2
	for _, file := range m.Files {
		least = min(least, m.rank(file))
	}
	return least
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
	return s.overlaps(ctx, t), true, s.tell(ctx, t)
}

// meets remembers files that an agent wrote, and finds those who have changed one of
// them that it had not changed before.
func (s *Trees) meets(t Tree, paths []string) (others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.files(t.TenantID)
	if all[t.Agent] == nil {
		all[t.Agent] = &touched{paths: map[string]bool{}, symbols: map[string][]string{}}
	}
	mine := all[t.Agent].paths
	for _, path := range paths {
		path, err := filepath.Rel(t.Path, path)
		if err != nil || path == ".git" || strings.HasPrefix(path, ".git/") || path == ".." || strings.HasPrefix(path, "../") || mine[path] || len(mine) >= maxTouched {
			continue
		}
		mine[path] = true
		for other, theirs := range all {
			if other != t.Agent && theirs.paths[path] && !slices.Contains(others, other) {
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
		s.note(t, now.Commit, changes)
	}
	return err
}

// tell tells both agents of the files that they changed and were not told of.
func (s *Trees) tell(ctx context.Context, t Tree) (err error) {
	for _, m := range s.compared(ctx, t) {
		if m.Other < m.Agent { // one of the two keeps what they were told
			m.Agent, m.Other = m.Other, m.Agent
		}
		known := s.Review(t.TenantID, m.Agent).Met[m.Other]
		var news []string
		m.Files = slices.DeleteFunc(m.Files, func(path string) bool {
			fresh := slices.DeleteFunc(m.marks(path), func(mark string) bool { return slices.Contains(known, mark) })
			news = append(news, fresh...)
			return len(fresh) == 0
		})
		if len(m.Files) == 0 || len(known) >= maxMet {
			continue
		}
		_, bad := s.amend(ctx, core.Self(t.TenantID, component), m.Agent, "review.overlap", func(tx *audit.Tx, r *Review) error {
			met := map[string][]string{}
			for other, files := range r.Met {
				if _, there := s.Has(t.TenantID, other); there {
					met[other] = files
				}
			}
			met[m.Other] = slices.Concat(met[m.Other], news)
			r.Met = met
			return errors.Join(s.opt.met(tx, m), s.opt.met(tx, Meeting{Agent: m.Other, Other: m.Agent, Files: m.Files, Same: m.Same, Apart: m.Apart}))
		})
		err = errors.Join(err, bad)
	}
	return err
}

// met tells an agent on the bus that another one has changed the same files.
func (o *Options) met(tx *audit.Tx, m Meeting) error {
	_, err := o.Bus.AcceptIn(tx, bus.Send{Recipient: m.Agent, TTL: bus.MaxTTL, Payload: core.MustEncode(map[string]any{
		"event": "tree.overlap", "agent": m.Other, "files": m.Files[:min(len(m.Files), 100)],
		"symbols": m.Same,
		"message": m.Other + " has changed the same files in a tree of its own" + m.symbols() + ". Change no more of them than you must: whoever is taken over second has to join both.",
	})})
	if err == nil || core.AsError(err).Code == core.Internal {
		return err
	}
	return nil // a mailbox that is full; the operator is told all the same
}

// symbols says which functions and the like both changed.
func (m *Meeting) symbols() string {
	var all []string
	for _, file := range m.Files {
		for _, symbol := range m.Same[file] {
			all = append(all, symbol+" in "+file)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", with " + Named(all)
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
	return s.overlaps(ctx, t), s.tell(ctx, t)
}
