package pane

import (
	"context"
	"maps"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
)

// pageRows is how many rows one read brings; kept pages are those around the
// window, so memory and work stay the same for any length of list.
const (
	pageRows  = 50
	keptPages = 4
)

// Fetch reads one page of a list, newest first.
type Fetch[T any] func(ctx context.Context, f core.Filter) (core.Page[T], error)

// Pager holds the part of a long list that a screen shows. Rows that have not
// arrived yet are known only by their number.
type Pager[T any] struct {
	name   string // of the pane that gets the replies
	filter core.Filter
	total  int
	pages  map[int][]T // by page number, from 1
	asked  map[int]bool
	stale  bool // the world changed while a read was under way
	gen    int  // of the filter; replies to an older one are dropped
	ready  bool
	err    error
}

type pageReply[T any] struct {
	gen  int
	page int
	got  core.Page[T]
	err  error
}

// NewPager makes an empty pager for a pane.
func NewPager[T any](name string) *Pager[T] {
	return &Pager[T]{name: name, pages: map[int][]T{}, asked: map[int]bool{}}
}

// Reset forgets everything and narrows the list to f. It is too large to be there
// wherever it is called.
//
//go:noinline
func (p *Pager[T]) Reset(f core.Filter) {
	p.filter, p.total, p.ready, p.stale, p.err = f, 0, false, false, nil
	p.gen++
	clear(p.pages)
	clear(p.asked)
}

// Len is the number of rows in the whole list.
func (p *Pager[T]) Len() int { return p.total }

// Err is why the last read failed, or nil.
func (p *Pager[T]) Err() error { return p.err }

// At is the row with index i, counted from 0, when it has arrived.
func (p *Pager[T]) At(i int) (*T, bool) {
	if i < 0 {
		return nil, false
	}
	page := p.pages[i/pageRows+1]
	if i %= pageRows; i >= len(page) {
		return nil, false
	}
	return &page[i], true
}

// Need reads the pages of rows first to first+n-1 that are not there yet.
func (p *Pager[T]) Need(fetch Fetch[T], first, n int) tea.Cmd {
	return p.read(fetch, first, n, false)
}

// Refresh reads those pages anew, because the world changed.
func (p *Pager[T]) Refresh(fetch Fetch[T], first, n int) tea.Cmd {
	if len(p.asked) > 0 {
		p.stale = true
		return nil
	}
	return p.read(fetch, first, n, true)
}

// Held is how many rows are in memory.
func (p *Pager[T]) Held() int {
	n := 0
	for _, page := range p.pages {
		n += len(page)
	}
	return n
}

// Index is the number of the first row in memory that is, or -1.
func (p *Pager[T]) Index(is func(*T) bool) int {
	for number, page := range p.pages {
		for i := range page {
			if is(&page[i]) {
				return (number-1)*pageRows + i
			}
		}
	}
	return -1
}

func (p *Pager[T]) read(fetch Fetch[T], first, n int, again bool) tea.Cmd {
	var cmds []tea.Cmd
	from := max(first, 0)/pageRows + 1
	to := max(first+n-1, 0)/pageRows + 1
	if last := max(p.total-1, 0)/pageRows + 1; p.ready {
		from, to = min(from, last), min(to, last)
	}
	if again { // rows have moved: what is out of sight is read when it is needed
		maps.DeleteFunc(p.pages, func(page int, _ []T) bool { return page < from || page > to })
	}
	for page := from; page <= to; page++ {
		if _, have := p.pages[page]; p.asked[page] || have && !again {
			continue
		}
		p.asked[page] = true
		f, gen := p.filter, p.gen
		f.Page, f.Size = page, pageRows
		cmds = append(cmds, Ask(p.name, func(ctx context.Context) any {
			got, err := fetch(ctx, f)
			return pageReply[T]{gen: gen, page: f.Page, got: got, err: err}
		}))
	}
	return tea.Batch(cmds...)
}

// Take stores a reply and reports whether it was one of this pager's, and
// whether the rows must be read once more because the world went on.
func (p *Pager[T]) Take(body any, first, n int) (mine, again bool) {
	r, ok := body.(pageReply[T])
	if !ok {
		return false, false
	}
	if r.gen != p.gen {
		return true, false
	}
	delete(p.asked, r.page)
	if p.err = r.err; r.err != nil {
		return true, false
	}
	p.ready, p.total = true, r.got.Info.Total
	p.pages[r.page] = r.got.Items
	for page := range p.pages {
		near := (first+n/2)/pageRows + 1
		if page != r.page && (page < near-keptPages/2 || page > near+keptPages/2 || (page-1)*pageRows >= p.total) {
			delete(p.pages, page)
		}
	}
	again = p.stale && len(p.asked) == 0
	if again {
		p.stale = false
	}
	return true, again
}
