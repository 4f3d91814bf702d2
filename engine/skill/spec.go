package skill

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"swarmdeck/engine/document"
)

// composite is the one kind of runner that needs no Runner: the steps are run
// as skills of their own.
const composite = "composite"

// Bounds of a runner section.
const (
	maxArgv    = 256
	maxEnv     = 100
	maxPrompt  = 16 << 10 // bytes
	maxBackoff = 10
)

// runner reads the runner section: kind says which other fields there are.
func (d *reading) runner(v document.Value) {
	spec := &d.s.Runner
	if v.Kind() != document.Mapping {
		d.Want(v, document.Mapping)
		return
	}
	word := func(to *string) func(document.Value) {
		return func(v document.Value) {
			*to = d.matching(v, func(s string) bool {
				return s != "" && len(s) <= 200 && strings.TrimSpace(s) == s && printable(s)
			}, "1-200 printable characters without space around them")
		}
	}
	kinds := map[string]map[string]func(document.Value){
		"builtin": {"name": word(&spec.Name)},
		"exec":    {"argv": d.argv, "dir": func(v document.Value) { spec.Dir, _ = d.String(v) }, "env": d.env},
		"agent":   {"agent": word(&spec.Agent), "prompt": d.prompt},
		"mcp":     {"server": word(&spec.Server), "tool": word(&spec.Tool)},
		"cad":     {"method": word(&spec.Method)},
		composite: {"steps": func(v document.Value) {
			spec.Steps = document.Each(d.Reader, v, d.step)
			d.most(v, len(spec.Steps), maxSteps)
			if len(spec.Steps) == 0 {
				d.Fail(v, "empty; want 1-%d steps", maxSteps)
			}
		}},
	}
	needed := map[string][]string{
		"builtin": {"name"}, "exec": {"argv"}, "agent": {"agent", "prompt"},
		"mcp": {"server", "tool"}, "cad": {"method"}, composite: {"steps"},
	}
	kind := v.Field("kind")
	if kind.Kind() == document.Nothing {
		d.Fail(kind, "missing")
		return
	}
	spec.Kind, _ = d.String(kind)
	fields, known := kinds[spec.Kind]
	if !known {
		if kind.Kind() == document.Text {
			d.Bad(kind, spec.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		}
		spec.Kind = ""
		return
	}
	fields["kind"] = func(document.Value) {}
	d.Object(v, fields, needed[spec.Kind]...)
	if spec.Kind == "exec" {
		d.place(spec)
	}
}

func (d *reading) argv(v document.Value) {
	d.s.Runner.Argv = document.Each(d.Reader, v, func(v document.Value) string { return d.expand(d.Text(v)) })
	d.most(v, len(d.s.Runner.Argv), maxArgv)
	if len(d.s.Runner.Argv) == 0 || d.s.Runner.Argv[0] == "" {
		d.Fail(v, "empty; want a program and its arguments")
	}
}

func (d *reading) env(v document.Value) {
	d.s.Runner.Env = d.Texts(v)
	d.most(v, len(d.s.Runner.Env), maxEnv)
	for name, text := range d.s.Runner.Env {
		if strings.ContainsAny(name, "=\x00") || name == "" {
			d.Bad(v.Field(name), name, "a name without = in it")
		}
		d.s.Runner.Env[name] = d.expand(text)
	}
}

// expand fills ${DIR}, the file's directory, in.
func (d *reading) expand(s string) string { return strings.ReplaceAll(s, "${DIR}", d.dir) }

// place makes the paths of an exec section absolute.
func (d *reading) place(spec *Spec) {
	spec.Dir = d.expand(spec.Dir)
	if !filepath.IsAbs(spec.Dir) {
		spec.Dir = filepath.Join(d.dir, spec.Dir)
	}
	if len(spec.Argv) > 0 && (strings.HasPrefix(spec.Argv[0], "./") || strings.HasPrefix(spec.Argv[0], "../")) {
		spec.Argv[0] = filepath.Join(spec.Dir, spec.Argv[0])
	}
}

func (d *reading) prompt(v document.Value) {
	d.s.Runner.Prompt, _ = d.String(v)
	switch n := len(d.s.Runner.Prompt); {
	case strings.TrimSpace(d.s.Runner.Prompt) == "":
		d.Bad(v, d.s.Runner.Prompt, "a text that is not only white space")
	case n > maxPrompt:
		d.Bad(v, fmt.Sprintf("%d bytes", n), fmt.Sprintf("at most %d bytes", maxPrompt))
	}
}

func (d *reading) step(v document.Value) Step {
	s := Step{ErrorPolicy: Abort, BackoffMultiplier: 2}
	d.Object(v, map[string]func(document.Value){
		"id":    func(v document.Value) { s.ID, _ = d.String(v) },
		"skill": func(v document.Value) { s.Skill = d.ref(v) },
		"params": func(v document.Value) {
			if v.Kind() != document.Mapping {
				d.Want(v, document.Mapping)
				return
			}
			s.Params = d.Raw(v)
		},
		"error_policy": func(v document.Value) {
			s.ErrorPolicy = ErrorPolicy(d.matching(v, func(s string) bool {
				return slices.Contains([]ErrorPolicy{Retry, Abort, Fallback}, ErrorPolicy(s))
			}, "retry, abort, fallback"))
		},
		"fallback": func(v document.Value) { s.Fallback = d.ref(v) },
		"backoff_multiplier": func(v document.Value) {
			s.BackoffMultiplier = d.Number(v)
			if v.Kind() == document.Number && !(s.BackoffMultiplier >= 1 && s.BackoffMultiplier <= maxBackoff) {
				d.Bad(v, s.BackoffMultiplier, fmt.Sprintf("1-%d", maxBackoff))
			}
		},
	}, "id", "skill")
	switch {
	case s.ErrorPolicy == Fallback && s.Fallback == "":
		d.Fail(v.Child("fallback"), "missing; error_policy fallback needs the skill that runs instead")
	case s.ErrorPolicy != Fallback && s.Fallback != "":
		d.Bad(v.Field("fallback"), s.Fallback, "a fallback only with error_policy: fallback")
	}
	return s
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
