package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"swarmdeck/store/internal/group"
)

// survey walks a whole file and notes what it finds.
type survey struct {
	ctx    context.Context
	f      io.ReaderAt
	m      fileMeta
	report *Report
	state  []uint8 // of each page
	bufs   [][]byte
	only   bool // read the identity alone
	seen   int
}

// States of a page.
const (
	unseen uint8 = iota
	inUse
	free
)

const (
	maxDepth    = 40  // of a tree; real ones have 2 to 6 levels
	maxProblems = 100 // kept in a report
)

// place is where in the file's structure a tree stands.
type place struct {
	tenant string
	bucket Bucket
	level  int // 0 the file, 1 a tenant, 2 a bucket of records
	seed   uint32
	count  *BucketStats
}

func (p place) String() string {
	return strings.Join([]string{"file", "tenant " + p.tenant, p.tenant + "/" + string(p.bucket)}[p.level:p.level+1], "")
}

func (s *survey) problem(format string, args ...any) {
	s.report.Found++
	if len(s.report.Problems) < maxProblems {
		s.report.Problems = append(s.report.Problems, fmt.Sprintf(format, args...))
	}
}

// run walks everything; its error is only that of ctx.
func (s *survey) run() error {
	s.state = make([]uint8, s.m.pages)
	s.state[0], s.state[1] = inUse, inUse
	if s.m.damaged {
		s.problem("one of the two meta pages is damaged; the other one is used, the newest commit may be missing")
	}
	s.freelist()
	if err := s.tree(s.m.root, place{}, nil, nil, 0); err != nil {
		return err
	}
	if s.report.Found == 0 {
		for id, st := range s.state {
			if st == unseen {
				s.problem("page %d: neither in use nor free", id)
			}
		}
	}
	return nil
}

func (s *survey) freelist() {
	if s.m.freelist == noFreelist {
		s.problem("the list of free pages is missing")
		return
	}
	p, err := readPage(s.f, s.m, s.m.freelist, nil)
	if err != nil {
		s.problem("freelist: %v", err)
		return
	}
	s.claim(p)
	at, n, err := p.freePages()
	if err != nil {
		s.problem("freelist: %v", err)
		return
	}
	s.report.FreePages = int64(n)
	for i := range n {
		id := at(i)
		switch {
		case id < 2 || id >= uint64(s.m.pages):
			s.problem("freelist: page %d is out of bounds", id)
		case s.state[id] != unseen:
			s.problem("page %d: free and in use, or free twice", id)
		default:
			s.state[id] = free
		}
	}
}

// claim marks a page in use; false when it was not to be.
func (s *survey) claim(p page) bool {
	for i := range p.pages(s.m) {
		if id := p.id + i; s.state[id] != unseen {
			s.problem("page %d: in use twice, or free and in use", id)
			return false
		}
	}
	for i := range p.pages(s.m) {
		s.state[p.id+i] = inUse
	}
	return true
}

// tree walks the pages below id, whose keys must lie in [low, high).
func (s *survey) tree(id uint64, in place, low, high []byte, depth int) error {
	s.seen++
	if s.seen%256 == 0 {
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	if depth > maxDepth {
		s.problem("%s: page %d: tree deeper than %d", in, id, maxDepth)
		return nil
	}
	// The bounds point into the parents' buffers: one buffer per depth and
	// nesting.
	for len(s.bufs) <= depth {
		s.bufs = append(s.bufs, nil)
	}
	p, err := readPage(s.f, s.m, id, s.bufs[depth])
	if err != nil {
		s.problem("%s: %v", in, err)
		return nil
	}
	s.bufs[depth] = p.data
	if !s.claim(p) {
		return nil
	}
	if in.count != nil {
		in.count.Pages += int64(p.pages(s.m))
	}
	switch p.flags {
	case branchPage:
		return s.branch(p, in, low, high, depth)
	case leafPage:
		return s.leaf(p, in, low, high, depth)
	}
	s.problem("%s: page %d: a freelist inside a tree", in, id)
	return nil
}

func (s *survey) branch(p page, in place, low, high []byte, depth int) error {
	if p.count == 0 {
		s.problem("%s: page %d: an empty branch", in, p.id)
	}
	for i := range p.count {
		e, err := p.at(i)
		if err != nil {
			s.problem("%s: %v", in, err)
			return nil
		}
		if !s.ordered(p, in, i, e.key, low, high) {
			return nil
		}
		end := high
		if i+1 < p.count {
			next, err := p.at(i + 1)
			if err != nil {
				s.problem("%s: %v", in, err)
				return nil
			}
			end = next.key
		}
		if err := s.tree(e.child, in, e.key, end, depth+1); err != nil {
			return err
		}
		low = e.key
	}
	return nil
}

// ordered reports whether key may be entry i of the page; low is the entry
// before it, or the page's lower bound.
func (s *survey) ordered(p page, in place, i int, key, low, high []byte) bool {
	if low != nil {
		if c := bytes.Compare(low, key); c > 0 || c == 0 && i > 0 {
			s.problem("%s: page %d: entry %d is out of order", in, p.id, i)
			return false
		}
	}
	if high != nil && bytes.Compare(key, high) >= 0 {
		s.problem("%s: page %d: entry %d belongs to another page", in, p.id, i)
		return false
	}
	return true
}

func (s *survey) leaf(p page, in place, low, high []byte, depth int) error {
	for i := range p.count {
		e, err := p.at(i)
		if err != nil {
			s.problem("%s: %v", in, err)
			return nil
		}
		if !s.ordered(p, in, i, e.key, low, high) {
			return nil
		}
		low = e.key
		if e.bucket != (in.level < 2) {
			s.problem("%s: page %d: entry %d is of the wrong kind", in, p.id, i)
			continue
		}
		if !e.bucket {
			s.record(in, e)
			continue
		}
		if err := s.nested(in, e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) record(in place, e element) {
	value, err := group.Unwrap(in.seed, in.bucket, e.key, e.value)
	if err != nil {
		s.problem("%s: %v", in, err)
		return
	}
	in.count.Records++
	in.count.Bytes += int64(len(e.key) + len(value))
	if in.tenant == "" && len(value) == 8 {
		n := binary.BigEndian.Uint64(value)
		switch {
		case bytes.Equal(e.key, layoutKey):
			s.report.Layout = n
		case bytes.Equal(e.key, schemaKey):
			s.report.Schema = n
		case bytes.Equal(e.key, epochKey):
			s.report.Epoch = n
		}
	}
}

// nested walks a bucket inside a bucket.
func (s *survey) nested(in place, e element, depth int) error {
	sub := place{tenant: in.tenant, level: in.level + 1}
	switch {
	case in.level == 1:
		sub.bucket = Bucket(e.key)
	case bytes.Equal(e.key, identityKey):
		sub.bucket, sub.level = Bucket(identityKey), 2
	case bytes.HasPrefix(e.key, tenantPrefix):
		sub.tenant = string(e.key[len(tenantPrefix):])
		s.report.Tenants = append(s.report.Tenants, sub.tenant)
	default:
		s.problem("file: unknown bucket %.80q", e.key)
		return nil
	}
	if s.only && sub.bucket != Bucket(identityKey) {
		return nil
	}
	if sub.level == 2 {
		sub.seed = group.SeedOf(sub.tenant, sub.bucket)
		at := len(s.report.Buckets)
		s.report.Buckets = append(s.report.Buckets, BucketStats{Tenant: sub.tenant, Bucket: sub.bucket})
		sub.count = &BucketStats{Tenant: sub.tenant, Bucket: sub.bucket}
		defer func() { s.report.Buckets[at] = *sub.count }()
	}
	if len(e.value) < bucketHeader {
		s.problem("%s: bucket header is cut short", sub)
		return nil
	}
	if root := binary.NativeEndian.Uint64(e.value); root != 0 {
		return s.tree(root, sub, nil, nil, depth+1)
	}
	p, err := parsePage(0, e.value[bucketHeader:])
	if err != nil || p.flags != leafPage {
		s.problem("%s: damaged inline bucket", sub)
		return nil
	}
	return s.leaf(p, sub, nil, nil, depth)
}

// identityOf reads a file's identity without opening it as a store; the zero
// value when it can't be read.
func identityOf(f io.ReaderAt, m fileMeta) identity {
	s := survey{ctx: context.Background(), f: f, m: m, only: true, report: &Report{}, state: make([]uint8, m.pages)}
	_ = s.tree(m.root, place{}, nil, nil, 0)
	return identity{layout: s.report.Layout, schema: s.report.Schema, epoch: s.report.Epoch}
}
