package core

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Object writes a JSON object as the general encoder does, where that costs
// too much. Its text may be anything: invalid UTF-8 is written as U+FFFD.
type Object struct{ b []byte }

// BeginObject begins one in memory that has room for it.
func BeginObject(room []byte) Object { return Object{append(room, '{')} }

// End is the whole object.
func (o *Object) End() Raw { return append(o.b, '}') }

// Raw adds a member whose value is JSON.
func (o *Object) Raw(name string, value Raw) {
	o.member(name)
	o.b = append(o.b, value...)
}

func (o *Object) member(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *Object) quote(s string) {
	// Only invalid UTF-8 is an error, and it is written as U+FFFD then.
	o.b, _ = jsontext.AppendQuote(o.b, s)
}

// Text adds a member.
func (o *Object) Text(name, s string) {
	o.member(name)
	o.quote(s)
}

// Optional adds a member unless it is empty.
func (o *Object) Optional(name, s string) {
	if s != "" {
		o.Text(name, s)
	}
}

// Texts adds a list unless it is empty.
func (o *Object) Texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	o.member(name)
	o.b = append(o.b, '[')
	for i, s := range list {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.quote(s)
	}
	o.b = append(o.b, ']')
}

// Number adds a number.
func (o *Object) Number(name string, n int64) {
	o.member(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

// Nonzero adds a number unless it is 0.
func (o *Object) Nonzero(name string, n uint64) {
	if n != 0 {
		o.member(name)
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

// Flag adds true, or nothing.
func (o *Object) Flag(name string, v bool) {
	if v {
		o.member(name)
		o.b = append(o.b, "true"...)
	}
}

// Time adds a time, one that is zero only with always.
func (o *Object) Time(name string, at time.Time, always bool) {
	if always || !at.IsZero() {
		o.member(name)
		o.b = append(o.b, '"')
		o.b = at.AppendFormat(o.b, time.RFC3339Nano)
		o.b = append(o.b, '"')
	}
}
