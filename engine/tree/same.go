package tree

import (
	"bytes"
	"context"
	"slices"
)

// Bounds of what is compared of two agents that changed the same files.
const (
	maxCompared   = 20      // files, and meetings
	maxSymbolsMet = 20      // of a file
	maxWhole      = 8 << 20 // bytes of such files and their changes
)

// compared are the meetings of an agent, with what is known of the symbols in which they
// meet. What can't be read is not known.
func (s *Trees) compared(ctx context.Context, t Tree) []Meeting {
	all := s.meetings(t)
	for i := range all[:min(len(all), maxCompared)] {
		m := &all[i]
		files := m.Files[:min(len(m.Files), maxCompared)]
		other, ok := s.works(t.TenantID, m.Other)
		if !ok {
			continue
		}
		mine, theirs := s.symbols(ctx, t, files), s.symbols(ctx, other, files)
		m.Same, m.Apart = map[string][]string{}, map[string]bool{}
		for _, file := range files {
			m.compare(file, mine[file], theirs[file])
		}
	}
	return all
}

// compare notes the symbols of a file that both changed, or that they changed others.
func (m *Meeting) compare(file string, a, b []string) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	apart := true
	for _, symbol := range a {
		if !slices.Contains(b, symbol) {
			continue
		}
		if apart = false; symbol != "" && len(m.Same[file]) < maxSymbolsMet {
			m.Same[file] = append(m.Same[file], symbol)
		}
	}
	if apart {
		m.Apart[file] = true
	}
}

// symbols are those that an agent changed in files, as far as they can be told.
func (s *Trees) symbols(ctx context.Context, t Tree, files []string) map[string][]string {
	out := map[string][]string{}
	var missing []string
	s.mu.Lock()
	of := s.files(t.TenantID)[t.Agent]
	if of != nil && of.state != "" {
		for _, file := range files {
			if known, ok := of.symbols[file]; ok {
				out[file] = known
			} else {
				missing = append(missing, file)
			}
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return out
	}
	var patch bytes.Buffer
	whole := &Bounded{To: &patch, Most: maxWhole}
	if err := s.opt.Driver.Whole(ctx, t, of.since, of.state, missing, whole); err != nil {
		return out
	}
	found := map[string][]string{}
	if whole.Over == 0 {
		found = Symbols(patch.Bytes())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range missing {
		of.symbols[file], out[file] = found[file], found[file]
	}
	return out
}
