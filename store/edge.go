package store

import "bytes"

// edge knows roughly where a bucket's keys end: the greatest key of some
// commits ago. Keys beyond it count as arriving in order even when those of
// concurrent callers overtake each other.
type edge struct {
	known      bool
	was, is    []byte // the greatest key some commits ago and now
	commits    int
	next       []byte // becomes was
	lastCommit uint64
}

// edgeAge is the number of commits after which the edge moves on.
const edgeAge = 8

// beyond reports whether a key lies at the edge, and moves it.
func (e *edge) beyond(key []byte, commit uint64) bool {
	if e.lastCommit != commit {
		e.lastCommit = commit
		if e.commits++; e.commits >= edgeAge {
			e.commits = 0
			e.was, e.next = e.next, append(e.was[:0], e.is...)
		}
	}
	if bytes.Compare(key, e.is) > 0 {
		e.is = append(e.is[:0], key...)
	}
	return bytes.Compare(key, e.was) > 0
}
