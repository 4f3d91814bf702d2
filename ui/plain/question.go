package plain

import (
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// answers are the ways to answer a question: each of its options, or an object of
// its schema.
func (r *reader) answers(a *judge.Approval, line func(string, ...string) func()) []choice {
	q, err := a.Question()
	if err != nil {
		r.wrong("error: %v", err)
	}
	say := func(more ...string) func() {
		if !pane.HighRisk(a.Risk) {
			return line("approve", more...)
		}
		return r.with("reason to approve a "+string(a.Risk)+" risk", func(text string) { line("approve", append(more, "--reason", text)...)() })
	}
	all := []choice{{"leave it open", func() { r.out.line("left open") }}}
	switch {
	case err != nil:
	case len(q.Options) > 0:
		for _, o := range q.Options {
			all = append(all, choice{"answer: " + pane.OptionText(o), say("--content", string(core.MustEncode(map[string]string{"option": o.ID})))})
		}
	case q.Needs():
		all = append(all, choice{"answer it", func() {
			for _, f := range overlay.SchemaFields(q.Schema) {
				r.out.block("field", fieldText(f))
			}
			r.with("the answer as one line of JSON", func(text string) {
				if err := q.Check(core.Raw(text)); err != nil {
					r.wrong("error: %v; left open", err)
					return
				}
				say("--content", text)()
			})()
		}})
	default:
		all = append(all, choice{"say yes", say()})
	}
	return append(all,
		choice{"decline; who asks is told and goes on", r.with("reason to deny", func(text string) { line("deny", "--reason", text)() })},
		choice{"cancel; what asks is ended", r.with("reason to deny", func(text string) { line("deny", "--abort", "--reason", text)() })},
		choice{"put it off for 15 minutes", line("defer", "--for", "15m")},
		choice{"hand it to somebody else", r.with("name of who is to look at it", func(name string) { line("escalate", "--to", name)() })},
	)
}

// fieldText is what a question asks for in one line.
func fieldText(f overlay.Field) string {
	parts := []string{f.Name, string(f.Type)}
	if f.Required {
		parts = append(parts, "required")
	}
	if len(f.Enum) > 0 {
		values := make([]string, len(f.Enum))
		for i, v := range f.Enum {
			values[i] = string(v)
		}
		parts = append(parts, "one of "+strings.Join(values, " "))
	}
	if len(f.Default) > 0 {
		parts = append(parts, "else "+string(f.Default))
	}
	if f.Description != "" {
		parts = append(parts, f.Description)
	}
	return strings.Join(parts, "; ")
}
