package core

import "time"

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
