package core

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// Filter narrows a list. Zero fields do not filter. Lists are newest first.
type Filter struct {
	Status  string
	Agent   string
	Kind    string
	Session string
	Trace   string
	Task    string
	Since   time.Time
	Until   time.Time // not itself
	Match   string    // substring of the record's text, case-insensitive
	Page    int       // 1-based; 0 means 1
	Size    int       // 1-100; 0 means DefaultPageSize
}

// DefaultPageSize is the page size where the user named none.
const DefaultPageSize = 20

// MaxPageSize is the largest page (model 2).
const MaxPageSize = 100

// Check fills the defaults in and reports a page or size out of range.
func (f Filter) Check() (Filter, error) {
	if f.Page == 0 {
		f.Page = 1
	}
	if f.Size == 0 {
		f.Size = DefaultPageSize
	}
	if f.Page < 1 {
		return f, Invalid("page", f.Page, "1 or more")
	}
	if f.Size < 1 || f.Size > MaxPageSize {
		return f, Invalid("page_size", f.Size, "1-100")
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && f.Until.Before(f.Since) {
		return f, Invalid("until", f.Until.Format(time.RFC3339), "a time after since")
	}
	return f, nil
}

// Narrows reports whether any field filters.
func (f Filter) Narrows() bool {
	f.Page, f.Size = 0, 0
	return f != Filter{}
}

// Within says whether a time is one of the filter's.
func (f Filter) Within(at time.Time) bool {
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until))
}

// Finds says whether one of a record's texts holds Match.
func (f Filter) Finds(texts ...string) bool {
	want := strings.ToLower(f.Match)
	return want == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), want) })
}

// Named is a state as lists show it, in all the words that it has.
func Named(state string) string {
	if state == "waiting for you" {
		return state + ", needs you"
	}
	return strings.ReplaceAll(state, "_", " ")
}

// Wants says whether a field of a filter lets a value pass: it names none, or that one,
// or it among others with commas between.
func Wants(field, value string) bool {
	return field == "" || field == value || strings.Contains(field, ",") && slices.Contains(strings.Split(field, ","), value)
}

// WantsAny is Wants of at least one of some values.
func WantsAny(field string, values ...string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return Wants(field, v) })
}

// Hints are what a record that a filter lets pass must hold as it is, by the values of some of
// its fields: one that names several says nothing.
func Hints(fields ...string) (hints [][]byte) {
	for _, want := range fields {
		if want != "" && !strings.Contains(want, ",") {
			hints = append(hints, MustEncode(want))
		}
	}
	return hints
}

// Span is the half-open range of n things, counted from 0, that are within the
// filter's times; at is when one was made, later for each.
func (f Filter) Span(n int, at func(i int) (time.Time, error)) (lo, hi int, err error) {
	first := func(past func(time.Time) bool) int {
		return sort.Search(n, func(i int) bool {
			if err != nil {
				return true
			}
			var t time.Time
			t, err = at(i)
			return err != nil || past(t)
		})
	}
	hi = n
	if !f.Since.IsZero() {
		lo = first(func(t time.Time) bool { return !t.Before(f.Since) })
	}
	if !f.Until.IsZero() {
		hi = max(lo, first(func(t time.Time) bool { return !t.Before(f.Until) }))
	}
	return lo, hi, err
}

// maxOffset is past the end of every list, with room to add to it.
const maxOffset = math.MaxInt / 4

// Offset is the number of records before the page.
func (f Filter) Offset() int {
	if f.Size > 0 && f.Page > maxOffset/f.Size {
		return maxOffset
	}
	return (f.Page - 1) * f.Size
}

// Page is one page of a list with its place in the whole.
type Page[T any] struct {
	Items []T
	Info  PageInfo
}

// Rows are the items, a slice, and where they stand in the list.
func (p Page[T]) Rows() (items any, at PageInfo) { return p.Items, p.Info }

// Sort sorts a list in place and leaves what is equal in its order. It is for lists
// of some thousand records: of slices.SortFunc the compiler makes 5 to 13 kB anew
// for each type of record, of this one nothing worth speaking of.
func Sort[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// PageInfo is the trailer of a paged list. A page past the end is empty, not
// an error (requirement 4.2).
type PageInfo struct {
	Page     int  `json:"page"`
	PageSize int  `json:"page_size"`
	Total    int  `json:"total_count"`
	Next     bool `json:"has_next_page"`
	Previous bool `json:"has_previous_page"`
	AtLeast  bool `json:"at_least,omitzero"` // there may be more than Total: the rest was not counted
}

// NewPage places items within a list of total records.
func NewPage[T any](items []T, f Filter, total int) Page[T] {
	return Page[T]{Items: items, Info: PageInfo{Page: f.Page, PageSize: f.Size, Total: total, Next: f.Offset()+f.Size < total, Previous: f.Page > 1}}
}

// Gather makes a page of what comes one by one.
type Gather[T any] struct {
	Filter
	Items []T
	Total int // of what came so far
}

// Shows says whether what comes next is on the page.
func (g *Gather[T]) Shows() bool { return g.Total >= g.Offset() && len(g.Items) < g.Size }

// Add takes what comes next. It says whether the page has room for more.
func (g *Gather[T]) Add(v T) (more bool) {
	if g.Shows() {
		g.Items = append(g.Items, v)
	}
	g.Total++
	return len(g.Items) < g.Size
}

// Result is the page.
func (g *Gather[T]) Result() Page[T] { return NewPage(g.Items, g.Filter, g.Total) }

// PageOf is the page of a list that is there as a whole.
func PageOf[T any](all []T, f Filter) Page[T] {
	from := min(f.Offset(), len(all))
	return NewPage(slices.Clone(all[from:min(from+f.Size, len(all))]), f, len(all))
}

// Strings are the values of an enumeration as plain strings.
func Strings[S ~string](values ...S) []string {
	return Map(values, func(v S) string { return string(v) })
}

// Traits are what a Filter looks at in a record that is in memory.
type Traits struct {
	Status, Agent, Kind, Session, Trace string

	At   time.Time
	Text string // what Match is looked for in
}

// Pick is the page of a short list that a filter asks for. It passes on an
// error of reading the list.
func Pick[T any](all []T, err error, f Filter, of func(T) Traits) (Page[T], error) {
	if err == nil {
		f, err = f.Check()
	}
	if err != nil {
		return Page[T]{}, err
	}
	var kept []T
	for i := range all {
		if f.wants(of(all[i])) {
			kept = append(kept, all[i])
		}
	}
	return PageOf(kept, f), nil
}

func (f *Filter) wants(x Traits) bool {
	return Wants(f.Status, x.Status) && Wants(f.Agent, x.Agent) && Wants(f.Kind, x.Kind) && Wants(f.Session, x.Session) &&
		Wants(f.Trace, x.Trace) && f.Within(x.At) && f.Finds(x.Text)
}

// Map is what of makes of each of a list; nil of none.
func Map[T, U any](list []T, of func(T) U) []U {
	if len(list) == 0 {
		return nil
	}
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = of(v)
	}
	return out
}

// Sorted are the values of a map in the order of their keys.
func Sorted[K cmp.Ordered, V any](values map[K]V) []V {
	return Map(slices.Sorted(maps.Keys(values)), func(key K) V { return values[key] })
}

// Where are those of a list that are wanted; nil for none.
func Where[T any](list []T, wanted func(T) bool) (out []T) {
	for _, v := range list {
		if wanted(v) {
			out = append(out, v)
		}
	}
	return out
}
