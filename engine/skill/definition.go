package skill

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/schema"
)

// MaxFile is the largest skill file in bytes.
const MaxFile = 256 << 10

// Bounds of a definition (model 3; those of dependencies and steps are ours).
const (
	maxDescription  = 500 // characters
	maxTags         = 10
	maxTag          = 30 // characters
	maxTimeout      = 3600
	defaultTimeout  = 30
	mostRetries     = 5
	maxDependencies = 50
	maxSteps        = 100
	maxTopic        = 180
)

var topicPattern = core.Pattern(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// goodTopic reports whether messages may be published below a topic. What
// begins with "sys" belongs to the engine.
func goodTopic(s string) bool {
	first, _, _ := strings.Cut(s, ".")
	return len(s) <= maxTopic && topicPattern().MatchString(s) && first != "sys"
}

// Definition is one skill as it was read, with every mistake that can be seen
// in it alone. What it needs of others is checked when it is loaded.
type Definition struct {
	skill    Skill
	root     document.Value // where its fields stand
	file     string
	problems []document.Problem
}

// Define reads the skill that stands at v. Relative directories start at dir;
// source is the file to remember. Problems are told when it is loaded.
func Define(file string, v document.Value, source, dir string) Definition {
	d := reading{Reader: document.NewReader(file), dir: dir}
	d.s = Skill{
		Source: source, Timeout: defaultTimeout,
		Dependencies: []string{}, Tags: []string{}, Effects: []Effect{},
	}
	d.read(v)
	return Definition{skill: d.s, root: v, file: file, problems: d.Problems()}
}

// Problems are the mistakes in the definition itself.
func (d Definition) Problems() []document.Problem { return d.problems }

// parse reads a skill file.
func parse(file string, data []byte, dir string) Definition {
	r := document.NewReader(file)
	root, ok := r.Parse(data, MaxFile)
	if !ok {
		return Definition{file: file, problems: r.Problems()}
	}
	return Define(file, root, file, dir)
}

// contentOf is what a digest covers: the definition without when and whence it
// came.
func contentOf(s *Skill) *Skill {
	c := *s
	c.TenantID, c.Digest, c.Source, c.CreatedAt, c.UpdatedAt = "", "", "", time.Time{}, time.Time{}
	return &c
}

// digest is "" for a definition that has no canonical form, which reading has
// refused.
func digest(s *Skill) string {
	sum, _ := core.Digest(contentOf(s))
	return sum
}

// reading is a skill being read.
type reading struct {
	*document.Reader
	s   Skill
	dir string
}

func (d *reading) read(v document.Value) {
	optional := func(read func(document.Value)) func(document.Value) {
		return func(v document.Value) {
			if v.Kind() != document.Nothing {
				read(v)
			}
		}
	}
	d.Object(v, map[string]func(document.Value){
		"name":              func(v document.Value) { d.s.Name = d.matching(v, namePattern().MatchString, nameAllowed) },
		"version":           d.version,
		"description":       optional(d.description),
		"parameters_schema": func(v document.Value) { d.s.ParametersSchema = d.schema(v) },
		"returns_schema":    optional(func(v document.Value) { d.s.ReturnsSchema = d.schema(v) }),
		"timeout":           optional(func(v document.Value) { d.s.Timeout = d.Range(v, 1, maxTimeout) }),
		"max_retries":       optional(func(v document.Value) { d.s.MaxRetries = d.Range(v, 0, mostRetries) }),
		"dependencies":      optional(d.dependencies),
		"tags":              optional(d.tags),
		"effects":           optional(d.effects),
		"topic": optional(func(v document.Value) {
			d.s.Topic = d.matching(v, goodTopic, `tokens of a-z A-Z 0-9 _ - with dots between, not below "sys"`)
		}),
		"runner": d.runner,
	}, "name", "version", "parameters_schema", "runner")
	if d.s.Name == "sys" && !goodTopic(d.s.Area()) {
		d.Bad(v.Field("name"), d.s.Name, `a name other than "sys", or a topic of its own`)
	}
	if d.s.Runner.Kind == "agent" {
		d.refused(v, checkPrompt(d.s.Runner.Prompt, d.s.ParametersSchema))
	}
	if d.s.Runner.Kind == composite {
		d.refused(v, checkSteps(d.s.Runner.Steps, d.s.ParametersSchema))
	}
}

// refused reports errors that name their field, each at its place.
func (d *reading) refused(root document.Value, errs []error) {
	for _, err := range errs {
		d.Add(problemOf(root, err))
	}
}

// matching is a text that fits.
func (d *reading) matching(v document.Value, fits func(string) bool, allowed string) string {
	s, ok := d.String(v)
	if ok && !fits(s) {
		d.Bad(v, s, allowed)
	}
	return s
}

func (d *reading) version(v document.Value) {
	d.s.Version = d.Text(v) // 1.0 is a number: it is better told that 1.0.0 is meant
	if _, ok := parseVersion(d.s.Version); !ok && d.s.Version != "" {
		d.Bad(v, d.s.Version, versionAllowed)
	} else if !ok && v.Kind() == document.Text {
		d.Bad(v, "", versionAllowed)
	}
}

func (d *reading) description(v document.Value) {
	d.s.Description, _ = d.String(v)
	if n := utf8.RuneCountInString(d.s.Description); n > maxDescription {
		d.Bad(v, fmt.Sprintf("%d characters", n), fmt.Sprintf("at most %d characters", maxDescription))
	}
}

func (d *reading) dependencies(v document.Value) {
	d.s.Dependencies = append(d.s.Dependencies, document.Each(d.Reader, v, d.ref)...)
	d.most(v, len(d.s.Dependencies), maxDependencies)
	names := make([]string, len(d.s.Dependencies))
	for i, ref := range d.s.Dependencies {
		names[i], _, _ = strings.Cut(ref, "@")
		if slices.Contains(names[:i], names[i]) {
			d.Bad(v.Find(fmt.Sprint(i)), ref, "each skill once")
		}
	}
}

// ref is a skill named by name or name@version.
func (d *reading) ref(v document.Value) string {
	return d.matching(v, func(s string) bool { _, _, err := SplitRef(s); return err == nil }, refAllowed)
}

func (d *reading) tags(v document.Value) {
	d.s.Tags = append(d.s.Tags, document.Each(d.Reader, v, func(v document.Value) string {
		return d.matching(v, func(s string) bool {
			n := utf8.RuneCountInString(s)
			return n >= 1 && n <= maxTag && strings.TrimSpace(s) == s && core.Printable(s)
		}, fmt.Sprintf("1-%d printable characters without space around them", maxTag))
	})...)
	d.most(v, len(d.s.Tags), maxTags)
}

func (d *reading) effects(v document.Value) {
	known := []Effect{Read, Write, Network, Exec}
	d.s.Effects = append(d.s.Effects, document.Each(d.Reader, v, func(v document.Value) Effect {
		return Effect(d.matching(v, func(s string) bool { return slices.Contains(known, Effect(s)) }, "read, write, network, exec"))
	})...)
	for i, e := range d.s.Effects {
		if slices.Contains(d.s.Effects[:i], e) {
			d.Bad(v.Find(fmt.Sprint(i)), string(e), "each effect once")
		}
	}
}

func (d *reading) most(v document.Value, n, most int) {
	if n > most {
		d.Bad(v, fmt.Sprintf("%d entries", n), fmt.Sprintf("at most %d", most))
	}
}

func (d *reading) schema(v document.Value) core.Raw {
	if v.Kind() != document.Mapping {
		d.Want(v, document.Mapping)
		return nil
	}
	raw := d.Raw(v)
	if raw == nil {
		return nil
	}
	for _, f := range schema.Check(raw) {
		d.Fail(v.Find(f.Path...), "%s", f.Message)
	}
	return raw
}

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
				return s != "" && len(s) <= 200 && strings.TrimSpace(s) == s && core.Printable(s)
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
	needed := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return name == "dir" || name == "env" })
	fields["kind"] = func(document.Value) {}
	d.Object(v, fields, needed...)
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
