package cad

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
	"swarmdeck/ui/term"
)

func (p *Conflict) text(env pane.Env, g *wholeConflict, out *pane.Paras) {
	if g.gone {
		out.Add("", screen.Succeeded.Glyph(env.Glyphs)+" this conflict is decided", screen.Good)
		return
	}
	out.Add("why", conflictWhy(&g.Conflict)+": "+g.Description, screen.Warn)
	if g.Volume > 0 {
		out.Add("overlap", solid.Number(g.Volume)+" mm3", screen.Bad)
	}
	out.Add("decide", decide(&g.Conflict), screen.Dim)
	out.Rows("", sides(g, p.w, env.Glyphs.Ellipsis))
}

// decide says what the keys lead to.
func decide(c *model.Conflict) string {
	if c.Type == model.GeometryOverlap {
		return "keep source: it comes in, what it overlaps of the target goes; keep target: it stays out; merged: union, subtract or keep both"
	}
	return "keep source: the target takes over what the source has; keep target: it stays as it is; merged: properties that you give"
}

// sides is a table of both sides' properties, w cells wide, what differs marked; more
// stands where a text is cut.
func sides(g *wholeConflict, w int, more string) []pane.Row {
	source, target := properties(g.source), properties(g.target)
	names := slices.Sorted(maps.Keys(source))
	for name := range target {
		if _, ok := source[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = append([]string{""}, slices.DeleteFunc(names, func(n string) bool { return n == "" })...)
	label := 4
	for _, n := range names {
		label = max(label, min(term.Width(n), 24))
	}
	room := max((w-label-9)/2, 8)
	cell := func(s string, w int) string {
		s = term.CutWith(term.Clean(s), w, more)
		return s + strings.Repeat(" ", w-term.Width(s))
	}
	rows := []pane.Row{{
		Text: "  " + cell("", label) + " " + cell("SOURCE "+g.Source, room) + " " + cell("TARGET "+g.Target, room), Role: screen.Title,
	}}
	for _, n := range names {
		a, b := source[n], target[n]
		sign, role := "  ", screen.Text
		if a != b {
			sign, role = "* ", screen.Warn
		}
		name := n
		if n == "" {
			name = "id"
		}
		rows = append(rows, pane.Row{Text: sign + cell(name, label) + " " + cell(a, room) + " " + cell(b, room), Role: role})
	}
	return rows
}

// properties are an entity's as text, by name; "" is its id, or that it is
// deleted.
func properties(e *model.Entity) map[string]string {
	if e == nil {
		return map[string]string{"": "(deleted)"}
	}
	out := map[string]string{"": fmt.Sprintf("%s (%s)", e.ID, e.Type)}
	var all map[string]core.Raw
	if err := core.DecodeStored(e.Properties, &all); err != nil {
		out["properties"] = err.Error()
		return out
	}
	if e.CreatedBy != "" {
		out["created_by"] = e.CreatedBy
	}
	for name, v := range all {
		flatten(out, name, v, 0)
	}
	return out
}

// flatten writes a value out in lines: the members of an object each in their
// own.
func flatten(out map[string]string, name string, v core.Raw, depth int) {
	var members map[string]core.Raw
	if depth < 2 && strings.HasPrefix(strings.TrimSpace(string(v)), "{") && core.DecodeStored(v, &members) == nil {
		for k, m := range members {
			flatten(out, name+"."+k, m, depth+1)
		}
		return
	}
	out[name] = value(v)
}

// value is a JSON value for reading: numbers with six digits.
func value(v core.Raw) string {
	var read any
	if err := json.Unmarshal(v, &read); err != nil {
		return string(v)
	}
	switch x := read.(type) {
	case float64:
		return solid.Number(x)
	case string:
		return x
	case []any:
		words := make([]string, len(x))
		for i, e := range x {
			if n, ok := e.(float64); ok {
				words[i] = solid.Number(n)
			} else {
				words[i] = fmt.Sprint(e)
			}
		}
		return strings.Join(words, ", ")
	}
	return string(v)
}
