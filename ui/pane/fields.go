package pane

import (
	"cmp"
	"reflect"
	"strings"

	"swarmdeck/engine/face"
	"swarmdeck/ui/screen"
)

// field is a line of a sheet as it was declared.
type field struct {
	face.Column
	role  screen.Role
	opens string // the kind of thing that enter opens, "" for none
}

// roles are those that a declaration may name.
var roles = map[string]screen.Role{
	"accent": screen.Accent, "bad": screen.Bad, "busy": screen.Busy, "dim": screen.Dim, "title": screen.Title, "warn": screen.Warn,
}

// Fields adds lines of a record, of which v is a pointer, a word for each: a member by its
// path in JSON, "label:member" under another label. What an option may be that stands
// behind a comma is said at face.Of; here it may also be a role, and "opens": enter opens
// the thing of which this is the id, of the kind that the label names, or "opens=kind".
//
//	out.Fields(&env, d, "gate agent,accent digest,dim before_edit:prior_digest,dim task:task_id,opens")
func (p *Paras) Fields(env *Env, v any, words string) {
	at := face.At{Now: env.Now, Clock: When}
	for _, f := range fieldsOf(reflect.TypeOf(v).Elem(), words) {
		switch text := f.Text(v, at); {
		case f.Exact:
			p.Exact(f.Title, text, f.role)
		case f.opens != "":
			p.Link(f.Title, text, f.role, ItemOf(f.opens, text))
		default:
			p.Add(f.Title, text, f.role)
		}
	}
}

// fieldsOf reads a declaration, which is cheap beside how seldom a sheet is laid out.
func fieldsOf(t reflect.Type, words string) (all []field) {
	for word := range strings.FieldsSeq(words) {
		f := field{role: screen.Text}
		column, options, _ := strings.Cut(word, ",")
		label, _, named := strings.Cut(column, ":")
		if !named {
			column = label + ":" + label
		}
		for option := range strings.SplitSeq(options, ",") {
			role, is := roles[option]
			how, kind, _ := strings.Cut(option, "=")
			switch {
			case is:
				f.role = role
			case how == "opens":
				f.opens, f.role = cmp.Or(kind, label), screen.Accent
			default:
				column += "," + option
			}
		}
		f.Column = face.Read(t, column)
		all = append(all, f)
	}
	return all
}
