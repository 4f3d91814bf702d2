package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// rulers is the geometry of boxes that lie along x, 100 mm² thick.
type rulers struct {
	asked int
	built []Shape
	fail  error
}

func span(p core.Raw) (from, to float64) {
	var v struct {
		Box struct {
			Min [3]float64 `json:"min"`
			Max [3]float64 `json:"max"`
		} `json:"bounding_box"`
	}
	if err := core.DecodeStored(p, &v); err != nil {
		panic(err)
	}
	return v.Box.Min[0], v.Box.Max[0]
}

func (r *rulers) Overlap(a, b Entity) (float64, error) {
	r.asked++
	a0, a1 := span(a.Properties)
	b0, b1 := span(b.Properties)
	return max(0, min(a1, b1)-max(a0, b0)) * 100, r.fail
}

func (r *rulers) Build(s Shape) (core.Raw, error) {
	r.built = append(r.built, s)
	return boxed(1000, 1001), r.fail
}

// merge merges and commits.
func merge(t testing.TB, source, target *Workspace) Outcome {
	t.Helper()
	o := expect.Of(Merge(source, target, &rulers{}))(t)
	return done(t, target, o)
}

func done(t testing.TB, target *Workspace, o Outcome) Outcome {
	t.Helper()
	if !o.Change.Empty() {
		o.Change.Method = "workspace.merge"
		commit(t, target, o.Change)
	}
	if !slices.Equal(o.Conflicts, target.Conflicts()) && len(target.Conflicts()) == len(o.Conflicts) {
		t.Errorf("told of %v, open are %v", o.Conflicts, target.Conflicts())
	}
	return o
}

func told(o Outcome) string {
	var b strings.Builder
	for _, part := range []struct {
		sign string
		ids  []string
	}{{"+", o.Added}, {"~", o.Updated}, {"-", o.Removed}} {
		for _, id := range part.ids {
			b.WriteString(part.sign + id + " ")
		}
	}
	for _, c := range o.Conflicts {
		fmt.Fprintf(&b, "%s(%s", c.Type, c.EntityID)
		if c.WithID != "" {
			b.WriteString("," + c.WithID)
		}
		b.WriteString(") ")
	}
	return strings.TrimSpace(b.String())
}

// do is what happens in a workspace: +id=x puts a point, -id removes.
func do(t testing.TB, w *Workspace, script string) {
	t.Helper()
	for _, word := range strings.Fields(script) {
		kind, rest, _ := strings.Cut(word, ":")
		id, arg, _ := strings.Cut(rest, "=")
		var x, size float64
		_, _ = fmt.Sscanf(arg, "%f,%f", &x, &size)
		switch kind {
		case "point":
			put(t, w, point(id, x))
		case "line":
			put(t, w, line(id, x))
		case "hold":
			put(t, w, holds(id, strings.Split(arg, ",")...))
		case "box":
			putBox(t, w, id, x, size)
		case "del":
			commit(t, w, Change{Method: "entity.delete", Removed: strings.Split(id, ",")})
		case "cut": // cut:new=old makes a solid of another and removes that
			old, _ := w.Entity(arg)
			s := expect.Of(NewShape("transform", core.Raw(`{"matrix":[2]}`), []string{old.Shape}, ""))(t)
			commit(t, w, Change{Put: []Entity{{ID: id, Type: Solid, Shape: s.Hash, Properties: old.Properties}}, Shapes: []Shape{s}, Removed: []string{arg}})
		case "undo":
			expect.Of(w.Undo(by("history.undo")))(t)
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
}

func TestMergeGoesThreeWays(t *testing.T) {
	for _, c := range []struct {
		name                 string
		base, source, target string
		want                 string
	}{
		{"nothing happened", "point:a=1", "", "", ""},
		{"added", "", "point:a=1", "", "+a"},
		{"added to what was changed elsewhere", "point:b=1", "point:a=1", "point:b=2", "+a"},
		{"changed in the source", "point:a=1", "point:a=2", "", "~a"},
		{"changed in the target", "point:a=1", "", "point:a=2", ""},
		{"changed alike", "point:a=1", "point:a=2", "point:a=2", ""},
		{"changed differently", "point:a=1", "point:a=2", "point:a=3", "both_modified(a)"},
		{"deleted in the source", "point:a=1", "del:a", "", "-a"},
		{"deleted in the target", "point:a=1", "", "del:a", ""},
		{"deleted in both", "point:a=1", "del:a", "del:a", ""},
		{"deleted and changed", "point:a=1", "del:a", "point:a=2", "deleted_modified(a)"},
		{"changed and deleted", "point:a=1", "point:a=2", "del:a", "deleted_modified(a)"},
		{"made on both sides, alike", "", "point:a=1", "point:a=1", ""},
		{"made on both sides, differently", "", "point:a=1", "point:a=2", "id_collision(a)"},
		{"made on both sides, of other types", "", "point:a=1", "line:a=1", "id_collision(a)"},
		{"made again after a deletion", "point:a=1", "del:a point:a=5", "", "~a"},
		{"deleted and made on both sides", "point:a=1", "del:a point:a=5", "del:a point:a=6", "id_collision(a)"},
		{"made in the source, made and deleted in the target", "", "point:a=1", "point:a=2 del:a", "+a"},
		{"undone in the source", "point:a=1", "point:a=2 undo", "point:a=3", ""},

		{"solids apart", "", "box:s=0,10", "box:t=20,10", "+s"},
		{"solids that touch", "", "box:s=0,10", "box:t=10,10", "+s"},
		{"solids that overlap", "", "box:s=0,10", "box:t=5,10", "geometry_overlap(s,t)"},
		{"less than counts", "", "box:s=0,10", "box:t=9.999999999,10", "+s"},
		{"a solid that overlaps two", "", "box:s=0,30", "box:t=5,5 box:u=15,5 box:v=40,5", "geometry_overlap(s,t) geometry_overlap(s,u)"},
		{"only one of two overlaps", "", "box:s=0,10 box:r=50,10", "box:t=5,10", "+r geometry_overlap(s,t)"},
		{"a solid changed into the target's", "box:s=0,10", "box:s=15,10", "box:t=20,10", "geometry_overlap(s,t)"},
		{"a solid moved away from where the target's is", "box:s=0,10", "box:s=50,10", "box:t=5,5", "~s"},
		{"solids used up", "box:a=0,10", "cut:b=a", "", "+b -a"},
		{"what was used up and changed", "box:a=0,10", "cut:b=a", "box:a=0,11", "geometry_overlap(b,a) deleted_modified(a)"},
		{"what was used up stays when the result is left out", "box:a=0,10", "cut:b=a", "box:t=5,10", "geometry_overlap(b,t)"},
		{"what stays for that is in the way of others", "box:a=0,10", "cut:b=a box:c=1,2", "box:t=5,10", "geometry_overlap(b,t) geometry_overlap(c,a)"},
		{"an old version that stays is in the way of others", "box:a=0,10", "box:a=50,10 box:c=1,2", "box:t=55,10", "geometry_overlap(a,t) geometry_overlap(c,a)"},

		{"a constraint comes with its lines", "", "line:a=1 line:b=2 hold:k=a,b.end", "", "+a +b +k"},
		{"a constraint on a line that was changed elsewhere", "line:a=1 line:b=2", "hold:k=a,b", "line:a=3", "both_modified(k,a)"},
		{"a constraint on a line in conflict", "line:a=1 line:b=2", "line:a=4 hold:k=a,b", "line:a=3", "both_modified(a) both_modified(k,a)"},
		{"a constraint on a line deleted elsewhere", "line:a=1 line:b=2", "hold:k=a,b.start", "del:a", "deleted_modified(k,a)"},
		{"a line that the target holds was changed", "line:a=1 line:b=2", "line:a=3 line:b=3", "hold:k=a", "~b both_modified(a,k)"},
		{"a line that the target holds was deleted", "line:a=1 line:b=2", "del:a", "hold:k=a.center", "deleted_modified(a,k)"},
		{"a constraint that both sides solved otherwise", "line:a=1 line:b=2 hold:k=a,b", "line:a=3", "line:b=3", "both_modified(a,k)"},
		{"a constraint deleted with its line", "line:a=1 hold:k=a", "del:k,a", "", "-a -k"},
		{"constraints on one line from both sides", "line:a=1", "hold:k=a", "hold:l=a", "+k"},
		{"one left out leaves out the next", "line:a=1 line:b=2 line:c=3", "line:b=5 hold:k=a,b hold:l=b,c", "line:a=9 hold:m=b", "both_modified(b,m) both_modified(k,a) both_modified(l,b)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			main, _ := start(t, Main)
			do(t, main, c.base)
			ws, _ := branch(t, main, "ws")
			do(t, ws, c.source)
			do(t, main, c.target)
			o := merge(t, ws, main)
			got := told(o)
			expect.True(t, got == c.want, "merge: %s\nwant:  %s\n%+v", got, c.want, o.Conflicts)
			before := state(main)
			if again := merge(t, ws, main); len(again.Added)+len(again.Updated)+len(again.Removed) > 0 || !again.Change.Empty() || len(again.Conflicts) != len(o.Conflicts) || state(main) != before {
				t.Errorf("merging again: %s", told(again))
			}
			for _, k := range o.Conflicts {
				expect.True(t, k.Description != "" && k.Source == "ws" && k.Target == Main && (k.SourceHash != "" || k.TargetHash != ""),
					"conflict %+v says too little", k)
			}
		})
	}
}

func TestResolveDecidesAsNamed(t *testing.T) {
	for _, c := range []struct {
		name                 string
		base, source, target string
		id                   string
		strategy             Strategy
		merged               string
		want, then           string // outcome, and the ids after it
	}{
		{"source of two changes", "point:a=1", "point:a=2", "point:a=3", "a", KeepSource, "", "~a", "a"},
		{"target of two changes", "point:a=1", "point:a=2", "point:a=3", "a", KeepTarget, "", "", "a"},
		{"by hand", "point:a=1", "point:a=2", "point:a=3", "a", ManualMerge, `{"x":7}`, "~a", "a"},
		{"both of a collision", "", "point:a=2", "point:a=3", "a", ManualMerge, `{"operation":"keep_both"}`, "+point_1", "a point_1"},
		{"both, with a name", "", "point:a=2", "point:a=3", "a", ManualMerge, `{"operation":"keep_both","entity_id":"b"}`, "+b", "a b"},
		{"source of a collision of types", "", "point:a=2", "line:a=3", "a", KeepSource, "", "~a", "a"},
		{"source deleted", "point:a=1 hold:k=a", "del:a,k", "point:a=2 hold:l=a", "a", KeepSource, "", "-a -l", ""},
		{"target deleted", "point:a=1", "point:a=2", "del:a", "a", KeepTarget, "", "", ""},
		{"source of what the target deleted", "point:a=1", "point:a=2", "del:a", "a", KeepSource, "", "+a", "a"},
		{"source of an overlap", "", "box:s=0,30", "box:t=5,5 box:u=15,5 box:v=40,5", "s", KeepSource, "", "+s -t -u", "v s"},
		{"target of an overlap", "", "box:s=0,10", "box:t=5,5", "s", KeepTarget, "", "", "t"},
		{"both of an overlap", "", "box:s=0,10", "box:t=5,5", "s", ManualMerge, `{"operation":"keep_both"}`, "+s", "t s"},
		{"one of an overlap", "", "box:s=0,10", "box:t=5,5", "s", ManualMerge, `{"operation":"union"}`, "+s -t", "s"},
		{"cut out of an overlap", "", "box:s=0,10", "box:t=5,8", "s", ManualMerge, `{"operation":"subtract"}`, "+s ~t", "t s"},
		{"one of two versions", "box:s=0,10", "box:s=0,11", "box:s=0,12", "s", ManualMerge, `{"operation":"union"}`, "~s", "s"},
		{"what it was made from goes too", "box:a=0,10", "cut:b=a", "box:t=5,10", "b", KeepSource, "", "+b -t -a", "b"},
		{"what it was made from stays", "box:a=0,10", "cut:b=a", "box:t=5,10", "b", KeepTarget, "", "", "a t"},
		{"a version that overlaps another", "box:s=0,10", "box:s=0,11", "box:s=0,12 box:t=10.5,5", "s", KeepSource, "", "geometry_overlap(s,t)", "s t"},
		{"a constraint brings its line", "line:a=1", "hold:k=a", "del:a", "k", KeepSource, "", "+a +k", "a k"},
		{"a line brings the constraint that waited", "line:a=1 line:b=1", "line:a=2 hold:k=a,b", "line:a=3", "a", KeepSource, "", "~a +k", "a b k"},
		{"a line that is held", "line:a=1", "line:a=2", "hold:k=a", "a", KeepSource, "", "~a", "a k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			main, _ := start(t, Main)
			do(t, main, c.base)
			ws, _ := branch(t, main, "ws")
			do(t, ws, c.source)
			do(t, main, c.target)
			merge(t, ws, main)
			g := &rulers{}
			o := expect.Of(Resolve(ws, main, Resolution{c.id, c.strategy, core.Raw(c.merged)}, g))(t)
			done(t, main, o)
			got := strings.Fields(told(o))
			want := strings.Fields(c.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || ids(main) != c.then {
				t.Errorf("resolve: %s, then %s\nwant:    %s, then %s", told(o), ids(main), c.want, c.then)
			}
			if len(o.Conflicts) > 0 {
				return
			}
			again := merge(t, ws, main)
			expect.True(t, again.Change.Empty() && len(again.Conflicts) == 0, "merging again: %s", told(again))
		})
	}
}

func TestAMovedOverlapIsDecidedNext(t *testing.T) {
	main, _ := start(t, Main)
	do(t, main, "box:s=0,10")
	ws, _ := branch(t, main, "ws")
	do(t, ws, "box:s=0,11")
	do(t, main, "box:s=0,12 box:t=10.5,5")
	merge(t, ws, main)
	for range 2 {
		o := expect.Of(Resolve(ws, main, Resolution{EntityID: "s", Strategy: KeepSource}, &rulers{}))(t)
		done(t, main, o)
	}
	if ids(main) != "s" || len(main.Conflicts()) > 0 {
		t.Errorf("left %s, open %v", ids(main), main.Conflicts())
	}
	e, _ := main.Entity("s")
	expect.True(t, e.Hash == ws.entities["s"].Hash, "the source's version was not taken")
}

func TestResolveRefuses(t *testing.T) {
	main, _ := start(t, Main)
	do(t, main, "point:a=1 line:b=1")
	ws, _ := branch(t, main, "ws")
	do(t, ws, "point:a=2 box:s=0,10 line:b=4")
	do(t, main, "point:a=3 box:t=5,10 line:b=5")
	merge(t, ws, main)
	for _, c := range []struct {
		name, says string
		r          Resolution
		code       core.Code
	}{
		{"nothing open", "not found", Resolution{EntityID: "zz", Strategy: KeepSource}, core.NotFound},
		{"unknown strategy", "strategy", Resolution{EntityID: "a", Strategy: "guess"}, core.InvalidInput},
		{"nothing merged", "merged_properties", Resolution{EntityID: "a", Strategy: ManualMerge}, core.InvalidInput},
		{"merged is no object", "merged_properties", Resolution{EntityID: "a", Strategy: ManualMerge, Merged: core.Raw("[]")}, core.InvalidInput},
		{"union of points", "operation", Resolution{EntityID: "a", Strategy: ManualMerge, Merged: core.Raw(`{"operation":"union"}`)}, core.InvalidInput},
		{"properties for a solid", "operation", Resolution{EntityID: "s", Strategy: ManualMerge, Merged: core.Raw(`{"volume":1}`)}, core.InvalidInput},
		{"taken name", "entity_id", Resolution{EntityID: "a", Strategy: ManualMerge, Merged: core.Raw(`{"operation":"keep_both","entity_id":"t"}`)}, core.InvalidInput},
		{"bad name", "entity_id", Resolution{EntityID: "a", Strategy: ManualMerge, Merged: core.Raw(`{"operation":"keep_both","entity_id":"../t"}`)}, core.InvalidInput},
	} {
		_, err := Resolve(ws, main, c.r, &rulers{})
		expect.True(t, err != nil && strings.Contains(err.Error(), c.says) && core.AsError(err).Code == c.code,
			"%s: %v, want %s about %q", c.name, err, c.code, c.says)
	}
	boom := errors.New("the kernel is lost")
	for _, op := range []string{"union", "subtract"} {
		expect.Err(t, expect.Fault(Resolve(ws, main, Resolution{"s", ManualMerge, core.Raw(`{"operation":"` + op + `"}`)}, &rulers{fail: boom})), boom, op)
	}
	expect.Err(t, expect.Fault(Merge(ws, main, &rulers{fail: boom})), boom, "merge")
	expect.Is(t, core.AsError(expect.Fault(Merge(ws, ws, &rulers{}))).Code, core.InvalidInput, "with itself")
	do(t, main, "line:b=6")
	do(t, ws, "point:a=7")
	for _, id := range []string{"a", "b"} {
		expect.Is(t, core.AsError(expect.Fault(Resolve(ws, main, Resolution{EntityID: id, Strategy: KeepSource}, &rulers{}))).Code, core.Conflict, "stale", id)
	}
}

func TestALaterMergeReportsOnlyWhatChangedSince(t *testing.T) {
	main, _ := start(t, Main)
	do(t, main, "point:a=1 point:b=1")
	ws, _ := branch(t, main, "ws")
	do(t, ws, "point:a=2 point:b=2 point:c=2")
	do(t, main, "point:a=3 point:b=3")
	merge(t, ws, main)
	for _, id := range []string{"a", "b"} {
		o := expect.Of(Resolve(ws, main, Resolution{EntityID: id, Strategy: KeepTarget}, &rulers{}))(t)
		done(t, main, o)
	}
	do(t, ws, "point:b=5 point:c=5 point:d=5")
	expect.Is(t, told(merge(t, ws, main)), "+d ~c both_modified(b)")
	do(t, ws, "point:b=3")
	if o := merge(t, ws, main); told(o) != "" || len(main.Conflicts()) > 0 {
		t.Errorf("after both agree: %s, open %v", told(o), main.Conflicts())
	}
}

func TestWorkGoesBackAndForth(t *testing.T) {
	main, _ := start(t, Main)
	do(t, main, "point:a=1 point:b=1")
	ws, _ := branch(t, main, "ws")
	for i, step := range []struct {
		script, in, want string
	}{
		{"point:a=2", "ws", "~a"},
		{"point:a=3 point:c=1", Main, "~a +c"},
		{"point:a=4 del:c", "ws", "~a -c"},
		{"point:a=2", "ws", "~a"}, // as it was at first
		{"del:b", Main, "-b"},
		{"box:s=0,10", Main, "+s"},
		{"box:s=5,10", "ws", "~s"},
	} {
		source, target := ws, main
		if step.in == Main {
			source, target = main, ws
		}
		do(t, source, step.script)
		got := strings.Fields(told(merge(t, source, target)))
		want := strings.Fields(step.want)
		slices.Sort(got)
		slices.Sort(want)
		expect.Same(t, got, want, "step", i)
	}
}

func TestWhatATargetNeverHadIsNotADeletion(t *testing.T) {
	main, _ := start(t, Main)
	ws, _ := branch(t, main, "ws")
	do(t, main, "box:t=0,10")
	do(t, ws, "box:own=5,10")
	merge(t, main, ws)
	o := expect.Of(Resolve(main, ws, Resolution{EntityID: "t", Strategy: KeepTarget}, &rulers{}))(t)
	done(t, ws, o)
	expect.Is(t, told(merge(t, ws, main)), "geometry_overlap(own,t)")
}

func TestSiblingsCollideOverInheritedIDs(t *testing.T) {
	main, _ := start(t, Main)
	early, _ := branch(t, main, "early")
	do(t, early, "point:bracket=1")
	do(t, main, "point:bracket=2")
	late, _ := branch(t, main, "late")
	expect.Is(t, told(merge(t, late, early)), "id_collision(bracket)")
	other, _ := branch(t, main, "other")
	do(t, other, "point:bracket=3")
	expect.Is(t, told(merge(t, late, other)), "", "unchanged in one")
}

func TestAnUndoneMergeCanBeDoneAgain(t *testing.T) {
	main, _ := start(t, Main)
	do(t, main, "point:a=1 box:t=5,10")
	ws, _ := branch(t, main, "ws")
	do(t, ws, "point:b=1 box:s=0,10 del:a")
	before := state(main)
	first := told(merge(t, ws, main))
	after := state(main)
	do(t, main, "undo")
	if state(main) != before {
		t.Errorf("undone\n%s\nwant\n%s", state(main), before)
	}
	got := told(merge(t, ws, main))
	expect.True(t, got == first && state(main) == after, "again %s, first %s", got, first)
}

func TestDiffTellsWhatMakesTheOther(t *testing.T) {
	main, _ := start(t, Main)
	do(t, main, "point:a=1 point:b=1 point:c=1")
	ws, _ := branch(t, main, "ws")
	do(t, ws, "point:a=2 del:b point:d=1")
	var got []string
	for _, d := range Diff(main, ws) {
		got = append(got, fmt.Sprintf("%s %s %t %t", d.EntityID, d.Change, d.Before != nil, d.After != nil))
	}
	expect.True(t, slices.Equal(got, []string{"a changed true true", "b removed true false", "d added false true"}), "%q", got)
}
