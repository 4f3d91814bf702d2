// Package face says how records are shown: one declaration for each noun, of which
// every door makes what it shows. The command line makes tables of it, the cockpit
// lists, MCP the results of tools and their schemas, completion its candidates, and
// each the sentence that tells what a change came to.
//
// A column is added to a noun by a word in its declaration. All texts are as the record
// has them: who shows them on a screen cleans them.
package face

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

// Of declares how records of type T are shown.
//
// Columns are those of a list, a word for each, in order:
//
//	TITLE          what Cells has under this title
//	TITLE:member   a member, by its path in the record's JSON: usage.tokens; or by its
//	               name in Go where the JSON has none
//
// and after that, each behind a comma:
//
//	40             cells at most, but in a wide table
//	age            how long ago a time was
//	len            how many there are, in place of what they are
//	usd            an amount of money
//	s, ms          a length of time, from a number of them
//	argv           words as a shell takes them
//	lines          texts with a semicolon between, in place of a comma
//	right          stands at the right, as numbers and ages do by themselves
//	exact          every character that could deceive is spelled out
//
// An underscore in a title stands for a space. Zero, false, an empty text and no time
// are shown as nothing.
type Of[T any] struct {
	Noun    string // what one is called: "task"; "" for rows that have no name
	Columns string
	Wide    string // stand before the last column of a table that is asked for in full
	// List lays the columns out for a cockpit, the first first: "TITLE:28*5/2" shows 28
	// cells of what is in it before others are shown, takes 5 shares of the room that is
	// left for what is longer, and goes before those of a lower number where there is no
	// room, from 20 on before any text is cut; without a number it stays. After that k
	// marks the column that names the row, m one that is cut in its middle, r one at the
	// right, i ids, whose end is shown. Columns
	// that aren't here follow where there is room, but those with a minus: "-SEQ".
	List  string
	Cells Cells[T]
	// ID names a record in its tenant, Head says what it is about: each a member, or the
	// title of a cell. "" is nothing.
	ID, Head string
	// Tool is what a tool may see, "" is all that the record's JSON has. Words name
	// members: "name", "server=action.server" under another name, "state=STATE" a
	// cell's text, "args,one" only where one record is shown; "*-input" is all but one.
	// A line may end with what the model reads of its word: "reason: why it failed".
	Tool   string
	Called string // what a tool calls one; "" is the noun
	// Says tells what an operation ("task cancel") came to, where what is told of each
	// noun ("cancelled task 01…: its title") does not do.
	Says func(v *T, told, op string) string
	// Each has many of them told one after another rather than counted.
	Each bool
}

// Cells are texts that are no member as it is, by the titles of their columns.
type Cells[T any] map[string]func(v *T, at At) string

// At is where and when records are shown.
type At struct {
	Now time.Time
	Dir string // paths below it are shown from there; "" is where the process is
	// Clock writes times; nil is RFC 3339 in UTC.
	Clock func(now, t time.Time) string
	// Newest says whether no version of the skill is newer, Degraded whether a tenant
	// does not work as it should; nil where that isn't known.
	Newest   func(*skill.Skill) bool
	Degraded func(tenant string) bool
}

// Face is how records of one type are shown: an Of without its type. The functions take
// pointers to records.
type Face struct {
	Noun string
	Type reflect.Type
	Each bool

	Called string // what a tool calls one

	columns, wide, list, tool string
	cell                      func(title string) func(v any, at At) string // nil without such a cell
	id, head                  string
	says                      func(v any, told, op string) string
}

// Face is the declaration without its type.
func (o Of[T]) Face() *Face {
	f := &Face{
		Noun: o.Noun, Type: reflect.TypeFor[T](), Each: o.Each, Called: cmp.Or(o.Called, o.Noun),
		columns: o.Columns, wide: o.Wide, list: o.List, tool: o.Tool, id: o.ID, head: o.Head,
	}
	f.cell = func(title string) func(any, At) string {
		text := o.Cells[title]
		if text == nil {
			return nil
		}
		return func(v any, at At) string { return text(v.(*T), at) }
	}
	if o.Says != nil {
		f.says = func(v any, told, op string) string { return o.Says(v.(*T), told, op) }
	}
	return f
}

// Lists says that it has a name and columns.
func (f *Face) Lists() bool { return f.Noun != "" && f.id != "" && f.columns != "" }

// ID names a record in its tenant; "" for one that has no name.
func (f *Face) ID(v any) string { return f.word(f.id, v) }

// Head says what a record is about, beside its ID.
func (f *Face) Head(v any) string { return f.word(f.head, v) }

// State is in which state a record is, as its column says; "" for one without.
func (f *Face) State(v any, at At) string {
	for word := range strings.FieldsSeq(f.columns) {
		if title, _, _ := strings.Cut(word, ":"); title == "STATE" || title == "STATUS" {
			return f.column(word).Text(v, at)
		}
	}
	return ""
}

// Last is what the last column has, which says the most; "" without columns.
func (f *Face) Last(v any, at At) string {
	words := strings.Fields(f.columns)
	if len(words) == 0 {
		return ""
	}
	return f.column(words[len(words)-1]).Text(v, at)
}

func (f *Face) word(word string, v any) string {
	switch {
	case word == "":
		return ""
	case f.cell(word) == nil:
		word += ":" + word
	}
	return f.column(word).Text(v, At{})
}

// Says tells in a line what an operation on a record came to; verb is its word for that:
// "cancelled".
func (f *Face) Says(v any, verb, op string) string {
	told := strings.TrimSpace(verb+" "+f.Noun) + " " + f.ID(v)
	if head := f.Head(v); head != "" {
		told += ": " + head
	}
	if f.says != nil {
		return f.says(v, told, op)
	}
	return told
}

// Count tells what an operation on several records came to.
func (f *Face) Count(n int, verb string) string {
	if n == 1 {
		return fmt.Sprintf("%s 1 %s", verb, f.Noun)
	}
	return fmt.Sprintf("%s %d %s", verb, n, Many(f.Noun))
}

// Many is the plural of a noun.
func Many(noun string) string {
	if stem, is := strings.CutSuffix(noun, "cy"); is {
		return stem + "cies"
	}
	return noun + "s"
}

// Find is the face of records of a type, or of pointers to them; nil without one.
func Find(all []*Face, t reflect.Type) *Face {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, f := range all {
		if f.Type == t {
			return f
		}
	}
	return nil
}

// For is the face of what the engine keeps as a T.
func For[T any]() *Face { return Find(All(), reflect.TypeFor[T]()) }

// Rows are records as a slice, of what is one record, a slice or a page of them, and
// the type of each.
func Rows(v any) (rows reflect.Value, of reflect.Type) {
	if page, is := v.(interface{ Rows() (any, core.PageInfo) }); is {
		v, _ = page.Rows()
	}
	rows = reflect.ValueOf(v)
	if !rows.IsValid() {
		return rows, nil
	}
	if rows.Kind() != reflect.Slice {
		one := reflect.MakeSlice(reflect.SliceOf(rows.Type()), 1, 1)
		one.Index(0).Set(rows)
		rows = one
	}
	return rows, rows.Type().Elem()
}

// Row is a pointer to the i-th of the rows.
func Row(rows reflect.Value, i int) any {
	if v := rows.Index(i); v.Kind() == reflect.Pointer {
		return v.Interface()
	} else {
		return v.Addr().Interface()
	}
}
