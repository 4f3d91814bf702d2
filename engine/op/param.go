package op

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
)

// Param is one parameter of an operation.
type Param struct {
	// Name is that of the flag, and with _ for - of the field in an error; one that fills
	// a member has that one's.
	Name string
	// About is a line of help with the value's word in backquotes: "why, for
	// `TEXT`". Of an argument it is that word alone: ID.
	About  string
	Letter string // a short flag: f for -f; "" is none
	Also   string // another name of the flag, which no help shows; "" is none
	Arg    bool   // given by its place; the last may take what is left, a *[]string
	Rest   bool   // all that follows --, a *[]string
	Need   bool   // can't be left out
	// Whole says that a comma is a part of a value of a *[]string, not between two.
	Whole bool
	// Into is where the value goes, and holds the default until then: a *string,
	// *[]string, *bool, *int, *int64, *uint64, *float64, *time.Duration,
	// *time.Time, *Seconds, *Ago, *Words, *core.Raw (one JSON object), *Path or *File.
	Into any
	Enum []string
	// Least and Most bound a number, a duration in seconds, or the characters of a
	// text for clients of MCP; both 0 leave it to the operation.
	Least, Most int
	// Member points to the member of the operation's request that is meant, where Into
	// is none; nil is Into.
	Member any
	// Client is what a client's model reads of it; "" is About.
	Client string
	// Valid refuses a value that is given; nil takes all of its type.
	Valid func() error
	// From names what knows values, for completion: "task", "agent:idle", "file".
	// An argument from "tenant" is the tenant that the call is in.
	From string
	// Names is what a value names that not everybody reaches; "" follows from From,
	// Makes and Into, see Use.
	Names reach.Use
	// Sure says that it stands for a yes, which a door that had the call confirmed
	// or judged gives by itself.
	Sure bool
	// Makes says that it is a file or directory that is not there yet: who only
	// reads makes none.
	Makes bool
	// Given says that the caller named a value.
	Given bool
}

// File is what a file holds, or the caller's input, whose name is "-".
type File struct {
	Name string
	Data []byte
}

// Words are those of one line, split as a shell does.
type Words []string

// Seconds is a whole number of seconds, also written as a duration.
type Seconds int

// Type is its word in help.
func (*Seconds) Type() string { return "SECONDS" }

func (s *Seconds) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.Itoa(int(*s))
}

// Set reads it.
func (s *Seconds) Set(text string) error {
	if n, err := strconv.Atoi(text); err == nil {
		*s = Seconds(n)
		return nil
	}
	d, err := core.ParseSpan(text)
	if err != nil || d.Seconds() > math.MaxInt32 || d%time.Second != 0 {
		return errors.New("allowed: whole seconds like 60, or a duration like 2m")
	}
	*s = Seconds(d / time.Second)
	return nil
}

// Path is a path of the engine's machine, absolute once its caller has filled it.
type Path string

// Ago is a time of the past: as given, RFC 3339 or a duration before now.
type Ago struct {
	Text string
	time.Time
}

// flag makes a parameter that is given by its name.
func flag(into any, name, about string) *Param { return &Param{Name: name, About: about, Into: into} }

// need is a flag that can't be left out.
func need(into any, name, about string) *Param {
	return &Param{Name: name, About: about, Into: into, Need: true}
}

// from says what completes a parameter.
func (p *Param) from(source string) *Param {
	p.From = source
	return p
}

// enum closes the set of a parameter's values.
func (p *Param) enum(values ...string) *Param {
	p.Enum = values
	return p
}

// names says what a parameter's values name.
func (p *Param) names(what reach.Use) *Param {
	p.Names = what
	return p
}

// Use is what a parameter's values name of the machine; "" is nothing.
func (p *Param) Use() reach.Use {
	switch p.Into.(type) {
	case *Path, *File:
		return cmp.Or(p.Names, reach.Path)
	}
	switch {
	case p.Makes, p.From == "dir", p.From == "file":
		return cmp.Or(p.Names, reach.Path)
	case p.From == "host":
		return reach.Address
	}
	return p.Names
}

// values are the words that a parameter that names something was given.
func (p *Param) values() []string {
	switch into := p.Into.(type) {
	case *string:
		if p.Names == reach.Command { // a line of a shell's: its program, and what it names as one word
			return append(append(strings.Fields(*into), "")[:1:1], *into)
		}
		return []string{*into}
	case *Path:
		return []string{string(*into)}
	case *[]string:
		return *into
	case *Words:
		return *into
	}
	return nil
}

// maybe is an argument that can be left out.
func maybe(into any, word, source string) *Param {
	p := place(into, word, source)
	p.Need = false
	return p
}

// bounds bounds a parameter's value.
func (p *Param) bounds(least, most int) *Param {
	p.Least, p.Most = least, most
	return p
}

// fills says which member of its request a parameter means that is read into another
// variable.
func (p *Param) fills(member any) *Param {
	p.Member = member
	return p
}

// bounded takes over what the request allows the member that a parameter fills, and
// says it in help.
func (p *Param) bounded(request any) {
	if request == nil {
		return
	}
	r, has := bound.Of(request, cmp.Or(p.Member, p.Into))
	if r = r.Given(); !has {
		return
	}
	if r.Words != nil {
		if p.Enum == nil { // else it takes fewer of them
			p.Enum = r.Words
		}
		return
	}
	if p.Valid == nil {
		p.Valid = func() error {
			if d, is := p.Into.(*time.Duration); is && !r.Span { // its member counts seconds
				return r.Check(r.Name, d.Seconds())
			}
			return r.Check(r.Name, p.Into)
		}
	}
	if !p.Arg {
		p.About += ", " + r.Text
	}
	switch p.Into.(type) {
	case *[]string, *Words, *core.Raw: // a list's bound is no text's
		return
	}
	if math.IsInf(r.Most, 1) {
		return
	}
	p.Least, p.Most = int(max(r.Least, 0)), int(r.Most)
	if r.Span {
		p.Least, p.Most = p.Least/int(time.Second), p.Most/int(time.Second)
	}
	if _, text := p.Into.(*string); text {
		p.Least = max(p.Least, 1) // it is given
	}
}

// client says what a client's model reads of a parameter.
func (p *Param) client(about string) *Param {
	p.Client = about
	return p
}

// sure is the yes that a change needs which can't be taken back.
func sure(into *bool) *Param {
	return &Param{Name: "yes", About: "it is meant", Into: into, Sure: true}
}

// arg describes the argument of show and change.
func arg(word, source string) Param {
	return Param{Name: named(word), About: word, From: source}
}

// within is a flag whose value must be in a range.
func within[T ~int | ~int64](into *T, name, about string, low, high T, allowed string) *Param {
	p := flag(into, name, about)
	if _, span := any(low).(time.Duration); !span {
		p.Least, p.Most = int(low), int(high)
	}
	p.Valid = func() error {
		if *into < low || *into > high {
			return usage(name, "--%s: %v is not allowed; allowed: %s", name, *into, allowed)
		}
		return nil
	}
	return p
}

// following is the flag of what can be followed.
func following(into *bool) *Param { return flag(into, "follow", "go on with what comes") }

// activeIf has the engine do work for an operation that follows.
func activeIf(follows *bool) func(*Call) error {
	return func(c *Call) error {
		if !*follows {
			return nil
		}
		return c.Activate()
	}
}

// words are values as a line of help lists them.
func words[T ~string](between string, values ...T) string {
	return strings.Join(core.Strings(values...), between)
}

// Pairs are the values of a parameter that are given as KEY=VALUE.
func Pairs(field string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usage(field, "--%s: not of the form KEY=VALUE", field) // what it is may be a credential
		}
		if _, twice := m[k]; twice {
			return nil, usage(field, "--%s: %s is given twice", field, core.Clip(k))
		}
		m[k] = v
	}
	return m, nil
}

// named is the parameter's name of its word in help.
func named(word string) string {
	word, _, _ = strings.Cut(strings.ToLower(word), "[")
	return strings.TrimSuffix(word, "…")
}

// makes says that a parameter is a file or directory that is not there yet.
func (p *Param) makes() *Param {
	p.From, p.Makes = "file", true
	return p
}

// place is an argument.
func place(into any, word, source string) *Param {
	return &Param{Name: named(word), About: word, Arg: true, Need: true, Into: into, From: source}
}

// why is the reason that goes into the record.
func why(into *string) *Param { return flag(into, "reason", "why, for the record") }

// usage is a mistake in a parameter.
func usage(field, format string, args ...any) error {
	return core.Errorf(core.InvalidInput, format, args...).With("field", field)
}
