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

// arrival says where a key lies that is put.
type arrival int

const (
	anywhere arrival = iota
	again            // at the edge, where a greater one has been: most are written once more
	newest           // beyond all others
	arrivals
)

// arrive says where a key lies, and moves the edge.
func (e *edge) arrive(key []byte, commit uint64) arrival {
	if e.lastCommit != commit {
		e.lastCommit = commit
		if e.commits++; e.commits >= edgeAge {
			e.commits = 0
			e.was, e.next = e.next, append(e.was[:0], e.is...)
		}
	}
	if bytes.Compare(key, e.is) > 0 {
		e.is = append(e.is[:0], key...)
		return newest
	}
	if bytes.Compare(key, e.was) > 0 {
		return again
	}
	return anywhere
}
