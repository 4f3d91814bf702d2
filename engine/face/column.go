package face

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Column is one column of a list.
type Column struct {
	Title string
	Right bool
	Exact bool                      // see Of
	Time  bool                      // a time, or an age
	Most  int                       // cells at most; 0 is no limit
	Text  func(v any, at At) string // of a pointer to a record
	// Rank orders records by a number or a time; nil where the text does.
	Rank func(v any) float64
}

// Columns are those of a list; wide adds those that are shown only when they are asked
// for.
func (f *Face) Columns(wide bool) []Column {
	words := strings.Fields(f.columns)
	if wide && f.wide != "" {
		words = slices.Insert(words, len(words)-1, strings.Fields(f.wide)...)
	}
	return core.Map(words, f.column)
}

// Read is the column that a word declares of records of a type, where there are no cells.
func Read(t reflect.Type, word string) Column {
	return (&Face{Type: t, cell: func(string) func(any, At) string { return nil }}).column(word)
}

// column reads one word of a declaration. A word that can't be read is a mistake of the
// program: it panics.
func (f *Face) column(word string) Column {
	word, options, _ := strings.Cut(word, ",")
	title, member, _ := strings.Cut(word, ":")
	col := Column{Title: strings.ReplaceAll(title, "_", " ")}
	var how form
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "right":
			col.Right = true
		case "exact":
			col.Exact = true
		case "age", "len", "usd", "argv", "lines", "s", "ms":
			how = form(option)
		default:
			n, err := strconv.Atoi(option)
			if err != nil {
				panic(fmt.Sprintf("face of %s: column %s: no option is called %q", f.Type, title, option))
			}
			col.Most = n
		}
	}
	if member == "" {
		if col.Text = f.cell(title); col.Text == nil {
			panic(fmt.Sprintf("face of %s: column %s has no cell", f.Type, title))
		}
		return col
	}
	read, t, optional := f.member(member)
	if col.Time = when(t); how == "len" || numeric(t) || col.Time {
		col.Rank = func(v any) float64 { return how.rank(read(v)) }
	}
	col.Right = col.Right || how == "age" || how == "len" || how == "usd" || numeric(t)
	col.Text = func(v any, at At) string {
		m := read(v)
		if !m.IsValid() || m.IsZero() && !optional {
			return ""
		}
		return how.text(m, at)
	}
	return col
}

// member finds what a path names: how it is read of a pointer to a record, the zero
// Value where a pointer on the way is nil, and its type. Of an optional one, a pointer,
// zero is a value too.
func (f *Face) member(path string) (read func(v any) reflect.Value, t reflect.Type, optional bool) {
	var steps [][]int
	t = f.Type
	for name := range strings.SplitSeq(path, ".") {
		i := field(t, name)
		if i == nil {
			panic(fmt.Sprintf("face of %s: %s has no member %s", f.Type, t, name))
		}
		steps, t = append(steps, i), pointed(t).FieldByIndex(i).Type
	}
	return func(v any) reflect.Value {
		m := reflect.ValueOf(v)
		for _, step := range steps {
			for _, i := range step {
				if m = reflect.Indirect(m); !m.IsValid() {
					return m
				}
				m = m.Field(i)
			}
		}
		return reflect.Indirect(m)
	}, pointed(t), t.Kind() == reflect.Pointer
}

// field is the place of the member that JSON, or else Go, calls by the name.
func field(t reflect.Type, name string) []int {
	if t = pointed(t); t.Kind() != reflect.Struct {
		return nil
	}
	fields := reflect.VisibleFields(t)
	for _, called := range []func(reflect.StructField) string{
		func(f reflect.StructField) string { in, _, _ := strings.Cut(f.Tag.Get("json"), ","); return in },
		func(f reflect.StructField) string { return f.Name },
	} {
		if i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return f.IsExported() && called(f) == name }); i >= 0 {
			return fields[i].Index
		}
	}
	return nil
}

func pointed(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func numeric(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return !t.Implements(reflect.TypeFor[fmt.Stringer]())
	}
	return false
}

func when(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t.Implements(reflect.TypeFor[interface{ Time() time.Time }]())
}

// form is how a member is written.
type form string

// text writes a member.
func (how form) text(v reflect.Value, at At) string {
	switch how {
	case "len":
		return strings.TrimPrefix(strconv.Itoa(v.Len()), "0") // "" for none
	case "s":
		return Span(length(v, time.Second))
	case "ms":
		return Took(length(v, time.Millisecond))
	}
	switch x := v.Interface().(type) {
	case interface{ Time() time.Time }:
		return how.time(x.Time(), at)
	case time.Time:
		return how.time(x, at)
	case fmt.Stringer:
		return x.String()
	case []byte:
		return string(x)
	case []string:
		switch how {
		case "argv":
			return core.Join(x)
		case "lines":
			return strings.Join(x, "; ")
		}
		return strings.Join(x, ",")
	case map[string]string:
		return Assigned(x)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return map[bool]string{true: "yes", false: "no"}[v.Bool()]
	case reflect.Float32, reflect.Float64:
		if how == "usd" {
			return fmt.Sprintf("$%.2f", v.Float())
		}
		return fmt.Sprintf("%.2f", v.Float())
	case reflect.Slice:
		all := make([]string, v.Len())
		for i := range all {
			all[i] = how.text(reflect.Indirect(v.Index(i)), at)
		}
		return strings.Join(all, ",")
	}
	return fmt.Sprint(v.Interface())
}

// rank is a number that orders members as what they say.
func (how form) rank(v reflect.Value) float64 {
	switch {
	case !v.IsValid():
		return 0
	case how == "len":
		return float64(v.Len())
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	at, is := v.Interface().(time.Time)
	if !is {
		at = v.Interface().(interface{ Time() time.Time }).Time()
	}
	if how == "age" { // what is older comes last
		return -float64(at.UnixMicro())
	}
	return float64(at.UnixMicro())
}

func length(v reflect.Value, unit time.Duration) time.Duration {
	if v.CanFloat() {
		return time.Duration(v.Float() * float64(unit))
	}
	return time.Duration(v.Int()) * unit
}

func (how form) time(t time.Time, at At) string {
	if how == "age" {
		return at.Age(t)
	}
	if at.Clock != nil {
		return at.Clock(at.Now, t)
	}
	return Stamp(t)
}
