package pane

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/screen"
)

// Para is one paragraph of a page.
type Para struct {
	Label string // in the left column; "" goes on below the one before
	Text  string // line breaks are kept
	Role  screen.Role
	Exact bool     // text that must be judged exactly: hidden characters are shown
	Head  bool     // a heading: Label only
	Wide  bool     // what takes the column of labels too: tables keep their shape
	Table bool     // exact lines that are not wrapped: the page scrolls sideways
	Rows  []Row    // lines that are cut, not wrapped, in place of Text
	JSON  core.Raw // a document whose parts fold, in place of Text
	Flow  Flow     // what lays itself out, in place of Text
}

// Plain is the paragraph's text where nothing is drawn.
func (p *Para) Plain() string {
	if p.Flow == nil {
		return p.Text
	}
	lines := core.Map(p.Flow.Lines(unbroken), func(l screen.Styled) string { return l.Text })
	return strings.Join(lines, "\n")
}

// unbroken is a width that no line has.
const unbroken = 1 << 20

// Flow is text that lays itself out in lines of at most so many cells, such as a diff.
type Flow interface {
	Lines(width int) []screen.Styled
}

// Row is a line that is cut where the room ends, such as one of a tree.
type Row struct {
	Lead string // drawn before the text, in the role of borders
	Text string
	Role screen.Role
	Note string // after the text, never cut
	Item Item   // what enter opens; may be empty
}

// Paras collects paragraphs; empty ones are left out.
type Paras []Para

// Head adds a heading.
func (p *Paras) Head(text string) { *p = append(*p, Para{Label: text, Head: true}) }

// Add adds a line when it says something.
func (p *Paras) Add(label, text string, role screen.Role) {
	if text != "" {
		*p = append(*p, Para{Label: label, Text: text, Role: role})
	}
}

// State adds a line that says how something is.
func (p *Paras) State(env *Env, label string, s State) {
	if s.Word != "" {
		p.Add(label, s.Label(env.Glyphs), s.Role())
	}
}

// Link adds a line that enter opens.
func (p *Paras) Link(label, text string, role screen.Role, it Item) {
	if text != "" {
		*p = append(*p, Para{Label: label, Rows: []Row{{Text: text, Role: role, Item: it}}})
	}
}

// Exact adds text that must be judged exactly and returns its number.
func (p *Paras) Exact(label, text string, role screen.Role) int {
	if text != "" {
		*p = append(*p, Para{Label: label, Text: text, Role: role, Exact: true})
	}
	return len(*p) - 1
}

// Whole adds a text that must be judged exactly, in the whole width.
func (p *Paras) Whole(text string) {
	*p = append(*p, Para{Text: strings.TrimRight(text, "\n"), Exact: true, Wide: true})
}

// Flow adds what lays itself out, in the whole width, and returns its number.
func (p *Paras) Flow(of Flow) int {
	*p = append(*p, Para{Flow: of, Wide: true})
	return len(*p) - 1
}

// JSON adds a document whose objects, arrays and long strings fold: z folds or
// opens what is under the cursor, Z everything, enter too. Without a label it
// takes the whole width. What is no JSON is shown as text. Hidden characters
// are spelled out. An approval's arguments are never shown so: they must be
// seen whole.
func (p *Paras) JSON(label string, raw core.Raw) {
	if len(raw) > 0 {
		*p = append(*p, Para{Label: label, JSON: raw, Wide: label == ""})
	}
}

// Document adds a document under a heading of its own.
func (p *Paras) Document(head string, raw core.Raw) {
	if len(raw) > 0 {
		p.Head(head)
		p.JSON("", raw)
	}
}

// Rows adds lines that are cut and not wrapped, such as a tree. Without a
// label they take the whole width.
func (p *Paras) Rows(label string, rows []Row) {
	if len(rows) > 0 {
		*p = append(*p, Para{Label: label, Rows: rows, Wide: label == ""})
	}
}

// Made is when something was made, and by whom.
func Made(now, t time.Time, by string) string {
	if by == "" {
		return When(now, t)
	}
	return When(now, t) + " by " + by
}

// When is a time with its age, for paragraphs.
func When(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Clock(now, t) + " (" + Age(now, t) + " ago)"
}

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
