package document

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

// Problem is one mistake in a file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Field   string `json:"field"`
	Message string `json:"message"`
	Value   string `json:"value,omitempty"`   // what was given
	Allowed string `json:"allowed,omitempty"` // what may be
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Field, p.Message)
}

// Sort orders problems by the place in their files; the files stay in the
// order in which they first appear.
func Sort(problems []Problem) {
	rank := map[string]int{}
	for _, p := range problems {
		if _, seen := rank[p.File]; !seen {
			rank[p.File] = len(rank)
		}
	}
	core.Sort(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(a.Line, b.Line))
	})
}

// Err is an error of all the problems, in the order of the files; nil for
// none. Its details list them under "problems".
func Err(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	Sort(problems)
	lines := core.Map(problems, func(p Problem) string { return p.String() })
	return core.Errorf(core.InvalidInput, "%s", strings.Join(lines, "\n")).
		With("field", problems[0].Field).With("problems", problems)
}

// Problems are those found so far, in the order of the file.
func (r *Reader) Problems() []Problem {
	Sort(r.problems)
	return r.problems
}

// Err is everything found so far, in the order of the file.
func (r *Reader) Err() error { return Err(r.problems) }

// At reports a problem at a line.
func (r *Reader) At(line int, field, message string) {
	r.Add(Problem{Line: line, Field: field, Message: message})
}

// Add reports a problem of this file.
func (r *Reader) Add(p Problem) {
	if len(r.problems) < maxProblems {
		p.File = r.file
		r.problems = append(r.problems, p)
	}
}

// Fail reports what is wrong with a value.
func (r *Reader) Fail(v Value, format string, args ...any) {
	r.At(v.Line(), v.field(), fmt.Sprintf(format, args...))
}

// Bad reports a value that is not allowed.
func (r *Reader) Bad(v Value, given any, allowed string) {
	p := Problem{Line: v.Line(), Field: v.field(), Value: Clip(fmt.Sprint(given)), Allowed: allowed}
	shown := p.Value
	if _, text := given.(string); text {
		shown = fmt.Sprintf("%q", p.Value)
	}
	p.Message = shown + " is not allowed; allowed: " + allowed
	r.Add(p)
}

// Check reports err about v; nil is none.
func (r *Reader) Check(v Value, err error) {
	if err == nil {
		return
	}
	p := Problem{Line: v.Line(), Field: v.field(), Message: err.Error()}
	details := core.AsError(err).Details
	p.Value, _ = details["value"].(string)
	p.Allowed, _ = details["allowed"].(string)
	r.Add(p)
}

func (v Value) field() string {
	if v.path == "" {
		return "file"
	}
	return v.path
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return Clip(line)
}

// Clip keeps messages readable when a value is huge.
func Clip(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
