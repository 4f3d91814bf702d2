package skill

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// MaxFile is the largest skill file in bytes.
const MaxFile = 256 << 10

// Bounds of a definition (seed 3; those of dependencies and steps are ours).
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

// content is what a digest covers: the definition without when and whence it
// came.
type content struct {
	Name             string   `json:"name"`
	Version          string   `json:"version"`
	Description      string   `json:"description,omitempty"`
	ParametersSchema core.Raw `json:"parameters_schema"`
	ReturnsSchema    core.Raw `json:"returns_schema,omitempty"`
	Timeout          int      `json:"timeout"`
	MaxRetries       int      `json:"max_retries"`
	Dependencies     []string `json:"dependencies"`
	Tags             []string `json:"tags"`
	Effects          []Effect `json:"effects"`
	Topic            string   `json:"topic,omitempty"`
	Runner           Spec     `json:"runner"`
}

func contentOf(s *Skill) content {
	return content{
		s.Name, s.Version, s.Description, s.ParametersSchema, s.ReturnsSchema, s.Timeout, s.MaxRetries,
		s.Dependencies, s.Tags, s.Effects, s.Topic, s.Runner,
	}
}

// digest is "" for a definition that has no canonical form, which reading has
// refused.
func digest(s *Skill) string {
	sum, err := core.Digest(contentOf(s))
	if err != nil {
		return ""
	}
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
			return n >= 1 && n <= maxTag && strings.TrimSpace(s) == s && printable(s)
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
	for _, f := range checkSchema(raw) {
		d.Fail(v.Find(f.path...), "%s", f.message)
	}
	return raw
}
