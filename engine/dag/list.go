package dag

import (
	"context"
	"sort"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// listed is a list in the store whose entries have the numbers 1 to n.
type listed struct {
	rows  record.Rows[[]byte] // "" is the record itself
	under record.Key
	n     uint64
}

// pos is the event of an entry.
func (r reader) entry(l listed, i uint64) (uint64, error) {
	if l.rows == "" {
		return i, nil
	}
	v, err := l.rows.Data(r, l.at(i))
	if err == nil && len(v) < 8 {
		err = core.Errorf(core.Internal, "entry %d of %s is missing; run store check", i, l.rows)
	}
	at := record.Parts(v)
	return at.Seq(), err
}

// at is the key of an entry.
func (l listed) at(i uint64) record.Key {
	return append(make(record.Key, 0, len(l.under)+8), l.under...).Seq(i)
}

// upto is how many entries of a list are of events up to a pos.
func (r reader) upto(l listed, pos uint64) (uint64, error) {
	var bad error
	n := sort.Search(int(l.n), func(i int) bool {
		at, err := r.entry(l, uint64(i)+1)
		if err != nil {
			bad = err
		}
		return err != nil || at > pos
	})
	return uint64(n), bad
}

// of finds the list of a subject's events.
func (r reader) of(class byte, id string) (listed, error) {
	num, _, err := r.num(rawNameKey(class, id))
	if err != nil || num == 0 {
		return listed{rows: subjects, under: record.Seq(num)}, err
	}
	n, err := r.last(subjects, record.Seq(num))
	return listed{subjects, record.Seq(num), n}, err
}

// ofRun finds a run's stream.
func (r reader) ofRun(run string) (listed, error) {
	num, h, err := r.run(run)
	return listed{streams, record.Seq(num), h.Events}, err
}

// list pages through what make turns the events into that are in all the lists
// which find gives; keep leaves out more of them, of those that no column tells
// of, when q narrows the lists, nil none. Those of a run come in their order,
// all others newest first. A filter's kind is one of events.
func list[T any](ctx context.Context, d *DAG, tenant string, q Query, find func(reader, *Query) ([]listed, error),
	keep func(reader, Recorded) (bool, error), make func(reader, Recorded) (T, error),
) (core.Page[T], error) {
	f, err := q.Check()
	if err == nil && q.Kind != "" && newBody(Kind(q.Kind)) == nil {
		err = core.Invalid("kind", q.Kind, words(Kinds()))
	}
	if err != nil {
		return core.Page[T]{}, err
	}
	q.Filter = f
	forward := q.Forward || q.Run != ""
	var items []T
	var s *search
	total, narrow := 0, false
	take := func(r reader, e Recorded) error {
		item, err := make(r, e)
		if err == nil {
			items = append(items, item)
		}
		return err
	}
	err = d.view(ctx, tenant, "list the record", func(r reader) error {
		lists, err := find(r, &q)
		if err != nil {
			return err
		}
		counted := lists[0].rows == streams || lists[0].rows == subjects
		if narrow = len(lists) > 1 || q.Narrows() || q.returned != "" || q.told && !counted; narrow {
			s = newSearch(&q, lists, forward, uint64(r.Counter(countEvents)))
			return nil
		}
		show := func(w row) error {
			e, err := w.recorded()
			if err == nil {
				err = take(r, e)
			}
			return d.passOver(tenant, err)
		}
		if q.told {
			total, err = lists[0].told(r, forward, f, show)
			return err
		}
		total = int(lists[0].n)
		return r.rows(lists[0], forward, uint64(f.Offset()), uint64(f.Size), show)
	})
	for err == nil && narrow && !s.over {
		if err = s.scan(ctx, d, tenant); err != nil {
			break
		}
		err = d.view(ctx, tenant, "list the record", func(r reader) error {
			return s.step(r, func(c candidate) error {
				shows := total >= f.Offset() && len(items) < f.Size
				if c.sure && !shows {
					total++
					return nil
				}
				if c.unread != nil {
					return d.passOver(tenant, c.unread)
				}
				w, err := s.row(r, c.pos)
				w.unread = err
				if !c.sure && err == nil && !s.in(w.raw) {
					return nil
				}
				e, err := w.recorded()
				kept := err == nil && (c.sure || q.match(&e.Event))
				if kept && !c.sure && keep != nil {
					kept, err = keep(r, e)
				}
				if kept && err == nil {
					if total++; shows {
						err = take(r, e)
					}
				}
				// A page does not wait for the count of all that is like it.
				s.over = s.over || s.looked >= countLooks && len(items) == f.Size && total > f.Offset()+f.Size
				return d.passOver(tenant, err)
			})
		})
	}
	if err != nil {
		return core.Page[T]{}, err
	}
	page := core.NewPage(items, f, total)
	page.Info.AtLeast = narrow && !s.through
	return page, nil
}

// passOver tells of what can't be read: it hides nothing else of a list.
func (d *DAG) passOver(tenant string, err error) error {
	if len(core.DamagedIn(err)) == 0 {
		return err
	}
	d.ledger.Unread(tenant, "dag", err)
	return nil
}

// slice is how many events one read transaction walks: a long walk must not
// pin old pages. Lists only grow at their end.
const slice = 5000

// countLooks is how many events are looked at so that the number of all that
// match can be told, once the page is full.
const countLooks = 20_000

// walk reads up to n events of a list after the first skip.
func (r reader) walk(l listed, forward bool, skip, n uint64, fn func(Recorded) error) error {
	return r.rows(l, forward, skip, n, func(w row) error {
		e, err := w.recorded()
		if err != nil {
			return err
		}
		return fn(e)
	})
}

// told is a page of the entries of a list that are no bookkeeping, and how many there
// are. Each is looked for by its number among them, which the entries have.
func (l listed) told(r reader, forward bool, f core.Filter, fn func(row) error) (total int, err error) {
	_, newest, err := tip(r, l.rows, l.under)
	if err != nil || l.n == 0 {
		return 0, err
	}
	total = int(record.LastSeq(newest))
	for k := f.Offset(); k < total && k < f.Offset()+f.Size; k++ {
		want := uint64(k + 1)
		if !forward {
			want = uint64(total - k)
		}
		at := sort.Search(int(l.n), func(i int) bool {
			v, bad := l.rows.Data(r, l.at(uint64(i)+1))
			if bad != nil {
				err = bad
			}
			return bad != nil || record.LastSeq(v) >= want
		})
		if err == nil {
			err = r.rows(l, true, uint64(at), 1, fn)
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// rows is walk without a look into the events, also past those that can't be
// read.
func (r reader) rows(l listed, forward bool, skip, n uint64, fn func(row) error) error {
	for k := skip; k < l.n && k < skip+n; k++ {
		i := k + 1
		if !forward {
			i = l.n - k
		}
		var w row
		pos, err := r.entry(l, i)
		if err == nil {
			w, err = r.row(pos)
		}
		w.unread = err
		if err := fn(w); err != nil {
			return err
		}
	}
	return nil
}
