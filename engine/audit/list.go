package audit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// slice is how many events one read transaction walks: a walk of the whole
// log must not pin old pages. The log never changes behind such a walk, it
// only grows at its end.
const slice = 20_000

// List returns events newest first; f.Kind filters by event type (a trailing
// * matches a prefix), f.Task by subject id, f.Agent by actor or subject id,
// f.Trace, f.Match (over the event's JSON), f.Session by an id that the event
// names, f.Status by the state it led to, f.Since and f.Until (both
// inclusive). With times alone a page costs the same however long the log is.
func (l *Ledger) List(ctx context.Context, tenant string, f core.Filter) (core.Page[Event], error) {
	return l.list(ctx, tenant, f, true)
}

// Told is List without bookkeeping, but of a filter that names a kind. With times alone
// a page costs the same however long the log is.
func (l *Ledger) Told(ctx context.Context, tenant string, f core.Filter) (core.Page[Event], error) {
	return l.list(ctx, tenant, f, false)
}

func (l *Ledger) list(ctx context.Context, tenant string, f core.Filter, routine bool) (page core.Page[Event], err error) {
	if f, err = f.Check(); err != nil {
		return page, err
	}
	lo, hi, err := l.span(ctx, tenant, f)
	if want := newMatcher(f); err != nil {
		return page, fmt.Errorf("list audit events: %w", err)
	} else if want != nil {
		page, err = l.matching(ctx, tenant, f, lo, hi, want, routine || f.Kind != "")
	} else if routine {
		page, err = l.page(ctx, tenant, f, lo, hi)
	} else {
		err = l.st.View(ctx, tenant, func(tx store.Tx) (err error) {
			page, err = told(tx, f, lo, hi)
			return err
		})
	}
	if err != nil {
		return core.Page[Event]{}, fmt.Errorf("list audit events: %w", err)
	}
	return page, nil
}

// matching takes a page out of the events lo to hi that match, with bookkeeping or
// without.
func (l *Ledger) matching(ctx context.Context, tenant string, f core.Filter, lo, hi uint64, want *matcher, routine bool) (core.Page[Event], error) {
	g := core.Gather[Event]{Filter: f}
	err := l.walkBack(ctx, tenant, lo, hi, func(data []byte) error {
		ok, err := want.match(data, routine)
		if err != nil || !ok {
			return err
		}
		if !g.Shows() {
			g.Total++
			return nil
		}
		e, err := decode(data)
		g.Add(e)
		return err
	})
	return g.Result(), err
}

// page takes one page out of [lo, hi] by arithmetic: seqs have no gaps.
func (l *Ledger) page(ctx context.Context, tenant string, f core.Filter, lo, hi uint64) (core.Page[Event], error) {
	total := int(hi + 1 - lo)
	if f.Offset() >= total {
		return core.NewPage[Event](nil, f, total), nil
	}
	last := hi - uint64(f.Offset())
	first := max(lo, last+1-min(last, uint64(f.Size)))
	items := make([]Event, 0, last+1-first)
	err := l.walkBack(ctx, tenant, first, last, func(data []byte) error {
		e, err := decode(data)
		items = append(items, e)
		return err
	})
	return core.NewPage(items, f, total), err
}

// span returns the first and last seq within the filter's times; an empty
// span has last = first-1.
func (l *Ledger) span(ctx context.Context, tenant string, f core.Filter) (lo, hi uint64, err error) {
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		left, err := l.Sealed(tx)
		if err != nil {
			return err
		}
		from, to, err := f.Span(int(uint64(tx.Counter(counter))-left), func(i int) (time.Time, error) {
			return timeOf(tx, left+uint64(i)+1)
		})
		lo, hi = left+uint64(from)+1, left+uint64(to)
		return err
	})
	return lo, hi, err
}

func timeOf(tx store.Tx, seq uint64) (time.Time, error) {
	h, err := headAt(tx, seq)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, string(h.at))
}

// walkBack calls fn with the stored bytes of [lo, hi], newest first.
func (l *Ledger) walkBack(ctx context.Context, tenant string, lo, hi uint64, fn func(data []byte) error) error {
	for hi >= lo && hi > 0 {
		from := max(lo, hi+1-min(hi, slice))
		if err := l.walkSlice(ctx, tenant, from, hi, true, fn); err != nil {
			return err
		}
		hi = from - 1
	}
	return nil
}

// walk calls fn with the stored bytes of [lo, hi], oldest first.
func (l *Ledger) walk(ctx context.Context, tenant string, lo, hi uint64, fn func(data []byte) error) error {
	for lo <= hi {
		to := min(hi, lo+slice-1)
		if err := l.walkSlice(ctx, tenant, lo, to, false, fn); err != nil {
			return err
		}
		lo = to + 1
	}
	return nil
}

func (l *Ledger) walkSlice(ctx context.Context, tenant string, lo, hi uint64, reverse bool, fn func(data []byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.st.View(ctx, tenant, func(tx store.Tx) error {
		return tx.Scan(Events, key(lo), key(hi+1), reverse, func(_, data []byte) (bool, error) { return true, fn(data) })
	})
}

// matcher holds a filter in the form that scanning needs.
type matcher struct {
	kind, trace, task string
	agents            []string
	prefix            bool
	needle            []byte
	session           []byte // as the event's JSON writes it
	status            string
}

func newMatcher(f core.Filter) *matcher {
	m := &matcher{trace: f.Trace, task: f.Task, status: f.Status}
	m.kind, m.prefix = strings.CutSuffix(f.Kind, "*")
	if m.prefix && m.kind == "" {
		m.prefix = false
	}
	if f.Agent != "" {
		m.agents = strings.Split(f.Agent, ",")
	}
	if f.Match != "" {
		// The text is searched as stored, so the needle is written the same way.
		quoted, _ := jsontext.AppendQuote(nil, strings.ToLower(f.Match))
		m.needle = quoted[1 : len(quoted)-1]
	}
	if f.Session != "" {
		m.session, _ = jsontext.AppendQuote(nil, f.Session)
	}
	if m.kind == "" && m.trace == "" && m.task == "" && m.agents == nil && m.needle == nil && m.session == nil && m.status == "" {
		return nil
	}
	return m
}

func (m *matcher) match(data []byte, routine bool) (bool, error) {
	h, err := headOf(data)
	if err != nil {
		return false, err
	}
	switch {
	case h.routine && !routine,
		m.prefix && (len(h.typ) < len(m.kind) || string(h.typ[:len(m.kind)]) != m.kind),
		!m.prefix && m.kind != "" && string(h.typ) != m.kind,
		m.trace != "" && string(h.trace) != m.trace,
		m.task != "" && string(h.subjectID) != m.task,
		m.agents != nil && !slices.ContainsFunc(m.agents, func(a string) bool { return a == string(h.actor) || a == string(h.subjectID) }),
		m.session != nil && !bytes.Contains(data, m.session),
		m.needle != nil && !bytes.Contains(bytes.ToLower(data), m.needle):
		return false, nil
	}
	return m.status == "" || m.ledTo(data), nil
}

// ledTo says whether the event's state has the wanted status. Only events
// that name it at all are decoded.
func (m *matcher) ledTo(data []byte) bool {
	if !bytes.Contains(data, []byte(`"`+m.status+`"`)) {
		return false
	}
	var e struct {
		Payload struct {
			State struct {
				Status string `json:"status"`
				State  string `json:"state"` // what sessions call it
			} `json:"state"`
		} `json:"payload"`
	}
	if err := core.DecodeStored(data, &e); err != nil {
		return false // a state of another shape
	}
	return e.Payload.State.Status == m.status || e.Payload.State.State == m.status
}
