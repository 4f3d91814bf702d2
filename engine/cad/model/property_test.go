package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// world is some workspaces with their journals, in which anything happens.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	all   []*Workspace
	logs  map[string][]Entry
	names []string // that several workspaces choose on purpose
}

func newWorld(t *testing.T, seed uint64) *world {
	o := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), logs: map[string][]Entry{}, names: []string{"plate", "bolt", "cover", "edge"}}
	main, log := start(t, Main)
	o.all, o.logs[Main] = []*Workspace{main}, log
	for range 6 {
		o.change(main)
	}
	for _, id := range []string{"ws_a", "ws_b"} {
		w, log := branch(t, main, id)
		o.all, o.logs[id] = append(o.all, w), log
	}
	return o
}

func (o *world) any(w *Workspace, types ...EntityType) (Entity, bool) {
	var list []Entity
	for e := range w.All() {
		if len(types) == 0 || slices.Contains(types, e.Type) {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return Entity{}, false
	}
	return list[o.rnd.IntN(len(list))], true
}

func (o *world) commit(w *Workspace, c Change) Entry {
	o.t.Helper()
	e := commit(o.t, w, c)
	o.logs[w.ID()] = append(o.logs[w.ID()], e)
	return e
}

// change does one random operation.
func (o *world) change(w *Workspace) {
	o.t.Helper()
	id := func(t EntityType) string {
		if o.rnd.IntN(3) == 0 {
			return o.names[o.rnd.IntN(len(o.names))]
		}
		return w.NextID(t)
	}
	switch o.rnd.IntN(9) {
	case 0, 1:
		if e := line(id(Line), float64(o.rnd.IntN(4))); len(w.Constraints(e.ID)) == 0 {
			o.commit(w, Change{Put: []Entity{e}})
		}
	case 2, 3:
		e, s := box(o.t, id(Solid), float64(o.rnd.IntN(60)), float64(1+o.rnd.IntN(8)))
		if len(w.Constraints(e.ID)) == 0 {
			o.commit(w, Change{Put: []Entity{e}, Shapes: []Shape{s}})
		}
	case 4:
		if e, ok := o.any(w, Line); ok {
			o.commit(w, Change{Put: []Entity{line(e.ID, float64(o.rnd.IntN(4)))}})
		}
	case 5:
		a, one := o.any(w, Line)
		b, two := o.any(w, Line)
		if one && two {
			o.commit(w, Change{Put: []Entity{holds(w.NextID(Constraint), a.ID, b.ID+".end")}})
		}
	case 6:
		if e, ok := o.any(w); ok {
			gone := append(w.Constraints(e.ID), e.ID)
			o.commit(w, Change{Removed: gone})
		}
	case 7:
		if e, ok := o.any(w, Solid); ok && len(w.Constraints(e.ID)) == 0 {
			s := expect.Of(NewShape("transform", core.Raw(`{}`), []string{e.Shape}, ""))(o.t)
			o.commit(w, Change{Put: []Entity{{ID: w.NextID(Solid), Type: Solid, Shape: s.Hash, Properties: e.Properties}}, Shapes: []Shape{s}, Removed: []string{e.ID}})
		}
	case 8:
		o.history(w)
	}
}

// history goes back some operations and forth again, and looks whether all is
// as it was.
func (o *world) history(w *Workspace) {
	o.t.Helper()
	states := []string{state(w)}
	for range 1 + o.rnd.IntN(4) {
		e, err := w.Undo(by("history.undo"))
		if err != nil {
			break
		}
		o.logs[w.ID()] = append(o.logs[w.ID()], e)
		states = append(states, state(w))
	}
	keep := o.rnd.IntN(2)
	for len(states) > 1+keep {
		states = states[:len(states)-1]
		e := expect.Of(w.Redo(by("history.redo")))(o.t)
		o.logs[w.ID()] = append(o.logs[w.ID()], e)
		if state(w) != states[len(states)-1] {
			o.t.Fatalf("redone\n%s\nwant\n%s", state(w), states[len(states)-1])
		}
	}
}

// merge merges two at random, looks whether it kept its promises, and decides
// some of what it left open.
func (o *world) merge() {
	o.t.Helper()
	i := o.rnd.IntN(len(o.all))
	source, target := o.all[i], o.all[(i+1+o.rnd.IntN(len(o.all)-1))%len(o.all)]
	before, theirs := map[string]Entity{}, map[string]bool{}
	for e := range target.All() {
		before[e.ID] = e
		theirs[e.ID] = pair{source, target, e.ID, source.entities[e.ID], target.entities[e.ID]}.brought()
	}
	m := expect.Of(Merge(source, target, &rulers{}))(o.t)
	if !m.Change.Empty() {
		m.Change.Method = "workspace.merge"
		o.commit(target, m.Change)
	}
	o.checkMerge(source, target, before, theirs, m)
	again, err := Merge(source, target, &rulers{})
	lost := slices.ContainsFunc(m.Conflicts, func(c Conflict) bool { return !slices.Contains(again.Conflicts, c) })
	expect.Must(o.t, err == nil && !lost && len(again.Change.Put)+len(again.Change.Removed) == 0,
		"merging again: %s (%v)\nfirst: %s", told(again), err, told(m))
	for range 10 {
		o.resolveOne(source, target)
	}
}

func (o *world) checkMerge(source, target *Workspace, before map[string]Entity, theirs map[string]bool, m Outcome) {
	o.t.Helper()
	put := map[string]bool{}
	for _, id := range slices.Concat(m.Added, m.Updated) {
		put[id] = true
	}
	for e := range target.All() {
		switch {
		case put[e.ID] && e.Type == Solid:
			for other := range target.All() {
				if v, _ := (&rulers{}).Overlap(e, other); other.Type == Solid && !put[other.ID] && !theirs[other.ID] && v > leastOverlap {
					o.t.Fatalf("%s came in and overlaps %s", e.ID, other.ID)
				}
			}
		case e.Type == Constraint:
			from := func(get func(string) Entity) bool {
				ok := get(e.ID).Hash == e.Hash
				for _, id := range referred(e) {
					now, _ := target.Entity(id)
					ok = ok && now.Hash == get(id).Hash
				}
				return ok
			}
			expect.Must(o.t, from(func(id string) Entity { return before[id] }) || from(func(id string) Entity { s, _ := source.Entity(id); return s }),
				"constraint %s holds what it was not solved for", e.ID)
		}
	}
	for e := range source.All() { // two of one id that never met
		t, both := before[e.ID]
		collision := slices.ContainsFunc(m.Conflicts, func(c Conflict) bool { return c.EntityID == e.ID })
		_, decided := target.settled[source.ID()][e.ID]
		if both && t.Hash != e.Hash && t.Origin != e.Origin && t.Base == "" && e.Base == "" && !decided && !collision && source.settled[target.ID()][e.ID] == "" {
			o.t.Fatalf("%s of two origins was not reported", e.ID)
		}
	}
}

func (o *world) resolveOne(source, target *Workspace) {
	o.t.Helper()
	open := target.openOf(source.ID())
	if len(open) == 0 {
		return
	}
	var about []string
	for id := range open {
		about = append(about, id)
	}
	slices.Sort(about)
	id := about[o.rnd.IntN(len(about))]
	r := Resolution{EntityID: id, Strategy: []Strategy{KeepSource, KeepTarget, ManualMerge}[o.rnd.IntN(3)]}
	r.Merged = core.Raw([]string{`{"operation":"keep_both"}`, `{"operation":"union"}`, `{"operation":"subtract"}`}[o.rnd.IntN(3)])
	if r.Strategy == ManualMerge && o.rnd.IntN(2) == 0 {
		if e, ok := source.Entity(id); ok && e.Type == Line {
			r.Merged = line("x", 99).Properties
		}
	}
	out, err := Resolve(source, target, r, &rulers{})
	if err != nil {
		code := core.AsError(err).Code
		expect.Must(o.t, (r.Strategy == ManualMerge || code == core.Conflict) && code != core.Internal, "%s of %s: %v", r.Strategy, id, err)
		return
	}
	out.Change.Method = "workspace.resolve_conflict"
	o.commit(target, out.Change)
	for _, c := range out.Conflicts {
		expect.Must(o.t, c.EntityID != id || slices.ContainsFunc(out.Change.Conflicts, func(n Conflict) bool { return n == c }),
			"%s of %s left %v open", r.Strategy, id, c)
	}
	e, have := target.Entity(id)
	s, has := source.Entity(id)
	if r.Strategy == KeepSource && len(out.Change.Conflicts) == 0 && (have != has || e.Hash != s.Hash) {
		o.t.Fatalf("the source's %s was not kept", id)
	}
}

func TestWhateverHappensReplaysAndMergesAsPromised(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := newWorld(t, seed)
			for range 40 {
				if o.rnd.IntN(6) == 0 {
					o.merge()
					continue
				}
				o.change(o.all[o.rnd.IntN(len(o.all))])
			}
			for _, w := range o.all {
				again := expect.Of(Load(o.logs[w.ID()]))(t)
				if state(again) != state(w) || again.Seq() != w.Seq() {
					t.Fatalf("replayed\n%s\nwant\n%s", state(again), state(w))
				}
				for _, et := range []EntityType{Point, Line, Solid, Constraint} {
					if again.NextID(et) != w.NextID(et) {
						t.Fatalf("next id %s, want %s", again.NextID(et), w.NextID(et))
					}
				}
			}
		})
	}
}

func TestWorkApartNeverConflicts(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		main, _ := start(t, Main)
		do(t, main, "box:bed=0,10 line:l=1")
		var spaces []*Workspace
		for i := range 4 {
			w, _ := branch(t, main, fmt.Sprintf("ws_%d", i))
			for n := range 12 {
				switch rnd.IntN(3) {
				case 0:
					putBox(t, w, w.NextID(Solid), float64(1000*(i+1)+20*n), 5)
				case 1:
					put(t, w, line(w.NextID(Line), float64(n)))
				case 2:
					put(t, w, line(w.NextID(Line), 1), holds(w.NextID(Constraint), "l"))
				}
			}
			spaces = append(spaces, w)
		}
		want := main.Len()
		for _, w := range spaces {
			want += w.Len() - 2
			o := merge(t, w, main)
			expect.Must(t, len(o.Conflicts) == 0 && len(o.Updated)+len(o.Removed) == 0, "seed %d: %s", seed, told(o))
		}
		expect.Is(t, main.Len(), want, "seed", seed)
	}
}

func TestHistoryListsTheNewestFirst(t *testing.T) {
	w, _ := start(t, Main)
	do(t, w, "point:a=1 point:b=1 point:a=2 del:b undo undo")
	for _, c := range []struct {
		limit, offset int
		future        bool
		want          string
		total         int
	}{
		{10, 0, false, "[3 2 1]", 3},
		{10, 0, true, "[5! 4! 3 2 1]", 5},
		{2, 1, true, "[4! 3]", 5},
		{0, -1, false, "[3 2 1]", 3},
		{2, 9, true, "[]", 5},
	} {
		page, total := w.History(c.limit, c.offset, c.future)
		var list []string
		for _, op := range page {
			mark := ""
			if op.Undone {
				mark = "!"
			}
			list = append(list, fmt.Sprint(op.Seq)+mark)
		}
		if got := fmt.Sprint(list); got != c.want || total != c.total {
			t.Errorf("history(%d, %d, %t): %s of %d, want %s of %d", c.limit, c.offset, c.future, got, total, c.want, c.total)
		}
	}
	put(t, w, point("z", 1))
	expect.Is(t, core.AsError(expect.Fault(w.Redo(by("history.redo")))).Code, core.Conflict, "redo after a new operation")
	empty, _ := start(t, "x")
	expect.Is(t, core.AsError(expect.Fault(empty.Undo(by("history.undo")))).Code, core.Conflict, "undo of the beginning")
}

func FuzzLoad(f *testing.F) {
	main, log := start(f, Main)
	log = append(log, put(f, main, line("a", 1), holds("k", "a.end")), putBox(f, main, "s", 0, 10))
	undo := expect.Of(main.Undo(by("history.undo")))(f)
	redo := expect.Of(main.Redo(by("history.redo")))(f)
	f.Add([]byte(core.MustEncode(append(log, undo, redo))))
	ws, wlog := branch(f, main, "ws")
	wlog = append(wlog, put(f, ws, line("a", 2)))
	put(f, main, line("a", 3))
	o := expect.Of(Merge(main, ws, &rulers{}))(f)
	o.Change.Method = "workspace.merge"
	f.Add([]byte(core.MustEncode(append(wlog, commit(f, ws, o.Change)))))
	f.Fuzz(func(t *testing.T, data []byte) {
		var journal []Entry
		if core.DecodeStored(data, &journal) != nil {
			return
		}
		w, err := Load(journal)
		if err != nil {
			expect.True(t, core.AsError(err).Code != core.Internal, "%v is nobody's fault", err)
			return
		}
		expect.Is(t, w.Seq(), len(journal), "seq")
		var again []Entry
		expect.No(t, core.DecodeStored(core.MustEncode(journal), &again))
		v, err := Load(again)
		expect.True(t, err == nil && state(v) == state(w), "written and read again: %v", err)
		if _, err := w.Undo(by("history.undo")); err == nil {
			_, err := w.Redo(by("history.redo"))
			expect.True(t, err == nil, "%v", err)
			expect.Is(t, state(v), state(w), "undo and redo are not exact")
		}
		b, _, err := Branch(w, Record{ID: "branch_of_it"}, by("workspace.create"))
		if err != nil {
			expect.Is(t, w.ID(), "branch_of_it", err)
			return
		}
		o, err := Merge(b, w, anywhere{})
		expect.True(t, err == nil && len(o.Change.Put)+len(o.Change.Removed) == 0, "a fresh branch brings %+v: %v", o, err)
	})
}

// anywhere is geometry without any overlap.
type anywhere struct{}

func (anywhere) Overlap(a, b Entity) (float64, error) { return 0, nil }
func (anywhere) Build(s Shape) (core.Raw, error)      { return core.Raw("{}"), nil }
