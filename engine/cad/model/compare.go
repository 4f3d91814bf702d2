package model

import (
	"fmt"
	"slices"
)

// verdict is what a merge does about one id.
type verdict int

const (
	leave    verdict = iota // the target stays as it is
	agree                   // both sides have come to hold the same
	take                    // the source's version, or its removal
	conflict                // a person or a strategy decides
)

// pair compares what two workspaces hold under one id.
type pair struct {
	source, target *Workspace
	id             string
	s, t           *item // nil is absent
}

func (p pair) hashes() (source, target string) { return hashOf(p.s), hashOf(p.t) }

func hashOf(it *item) string {
	if it == nil {
		return ""
	}
	return it.Hash
}

// decided is the source's hash when an earlier merge or strategy decided.
func (p pair) decided() (hash string, ok bool) {
	hash, ok = p.target.settled[p.source.record.ID][p.id]
	return hash, ok
}

// common lists versions that both sides have known, what is most to the point
// first. An empty hash is a removal.
func (p pair) common() (known []string) {
	if h, ok := p.decided(); ok {
		known = append(known, h)
	}
	if h, ok := p.source.settled[p.target.record.ID][p.id]; ok {
		known = append(known, h)
	}
	base := p.source.base
	if p.target.record.Base == p.source.record.ID {
		base = p.target.base
	}
	if h, ok := base[p.id]; ok {
		known = append(known, h)
	}
	return known
}

// brought reports that both hold one version, which the target has from the
// source and not the other way round.
func (p pair) brought() bool {
	h := hashOf(p.s)
	if p.s == nil || h != hashOf(p.t) || p.target.base[p.id] == h || p.source.settled[p.target.record.ID][p.id] == h {
		return false
	}
	return p.source.record.Base != p.target.record.ID || p.source.base[p.id] != h
}

// judge is the three-way rule, by content: a side that holds a version which
// both have known has not changed it, so the other side's version stands. Where
// both have changed it, or neither can be told to be the older, it is a
// conflict.
func (p pair) judge() (verdict, ConflictType) {
	s, t := p.hashes()
	known := p.common()
	sourceOld, targetOld := slices.Contains(known, s), slices.Contains(known, t)
	if s == t {
		if p.s == nil || sourceOld {
			return leave, ""
		}
		return agree, ""
	}
	if h, ok := p.decided(); ok && h == s {
		return leave, ""
	}
	if _, removed := p.source.gone[p.id]; p.s == nil && !removed {
		return leave, "" // it never was there
	}
	_, gone := p.target.gone[p.id]
	switch {
	case p.t == nil && (!gone || len(known) == 0):
		return take, ""
	case p.strangers() && !targetOld:
		return conflict, IDCollision
	case targetOld && !sourceOld:
		return take, ""
	case sourceOld && !targetOld:
		return leave, ""
	case p.s == nil || p.t == nil:
		return conflict, DeletedModified
	case p.s.Origin != p.t.Origin:
		return conflict, IDCollision
	}
	return conflict, BothModified
}

// strangers reports two entities of one id of which the target has never known
// the source's.
func (p pair) strangers() bool {
	if p.s == nil || p.t == nil || p.s.Origin == p.t.Origin || p.source.record.Base == p.target.record.ID {
		return false
	}
	_, inherited := p.target.base[p.id]
	_, decided := p.decided()
	_, met := p.source.settled[p.target.record.ID][p.id]
	return !inherited && !decided && !met
}

// conflict describes what the pair can't agree on.
func (p pair) conflict(t ConflictType) Conflict {
	c := p.about(t)
	switch {
	case t == DeletedModified && p.s == nil:
		c.Description = fmt.Sprintf("%s was deleted in %s and changed in %s", p.id, c.Source, c.Target)
	case t == DeletedModified:
		c.Description = fmt.Sprintf("%s was changed in %s and deleted in %s", p.id, c.Source, c.Target)
	case t == IDCollision:
		c.Description = fmt.Sprintf("%s and %s each made a %s of its own: one is a %s, the other a %s", c.Source, c.Target, p.id, p.s.Type, p.t.Type)
	default:
		c.Description = fmt.Sprintf("%s was changed in both %s and %s", p.id, c.Source, c.Target)
	}
	return c
}

func (p pair) about(t ConflictType) Conflict {
	c := Conflict{Type: t, EntityID: p.id, Source: p.source.record.ID, Target: p.target.record.ID}
	c.SourceHash, c.TargetHash = p.hashes()
	if known := p.common(); len(known) > 0 {
		c.BaseHash = known[0]
	}
	return c
}
