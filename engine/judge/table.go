package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/judge/effect"
	"swarmdeck/engine/judge/topic"
)

// Limits of a policy file.
const (
	maxPolicy = 256 << 10
	maxRules  = 500
	maxWhen   = 4096
	celCost   = 100_000
)

// tableFile is a policy as written. The digest of its canonical JSON is the
// policy version.
type tableFile struct {
	Schema int        `yaml:"schema" json:"schema"`
	Name   string     `yaml:"name" json:"name"`
	Rules  []ruleFile `yaml:"rules" json:"rules"`

	effect.Lists `yaml:",inline"`
	Topics       []topic.Topic `yaml:"topics" json:"topics,omitempty"`
}

// ruleFile is one rule as written.
type ruleFile struct {
	ID         string   `yaml:"id" json:"id"`
	Gates      []Gate   `yaml:"gates" json:"gates"`
	Kinds      []string `yaml:"kinds" json:"kinds,omitempty"` // action.kind; none means any
	When       string   `yaml:"when" json:"when"`
	Decision   Decision `yaml:"decision" json:"decision"`
	ReasonCode string   `yaml:"reason_code" json:"reason_code"`
	Risk       Risk     `yaml:"risk" json:"risk"`
	Confidence *float64 `yaml:"confidence" json:"confidence,omitempty"`
	Rationale  string   `yaml:"rationale" json:"rationale,omitempty"`
	Retry      bool     `yaml:"retry" json:"retry,omitempty"`
	Route      `yaml:",inline"`
	Floor      bool `yaml:"floor" json:"floor,omitempty"` // asks a person about what a policy, this or one above, would approve
}

// rule is a compiled one. A nil program always matches.
type rule struct {
	ruleFile
	program   cel.Program
	operators int                         // of one that only compares and doesn't end at celCost; 0 for others
	counted   func() (cel.Program, error) // the same that does
}

// table is a compiled policy; it never changes.
type table struct {
	version string
	source  core.Raw // canonical JSON; version is its sha256
	file    tableFile
	byID    map[string]*rule
	floor   map[Gate][]*rule // the deny rules
	held    map[Gate][]*rule // the floors that ask
	rest    map[Gate][]*rule
	effects *effect.Classifier
	sees    map[string]variable
	topics  *topic.Index
}

var (
	gates      = []Gate{GateStart, GateTool, GateSkill, GateResult, GateBudget, GateAgent, GateCAD, GateIntent, GateNet}
	ruleName   = core.Pattern(`^[a-z0-9][a-z0-9_.-]{0,63}$`)
	reasonName = core.Pattern(`^[a-z0-9_.]{1,64}$`)
)

// loadTable reads and compiles a policy. Unknown fields, aliases and more
// than one document are refused; every error names its rule and field.
func loadTable(source []byte) (*table, error) {
	var file tableFile
	if err := file.parse(source); err != nil {
		return nil, err
	}
	return newTable(file)
}

// newTable checks and compiles what was read.
func newTable(file tableFile) (*table, error) {
	if err := file.check(); err != nil {
		return nil, err
	}
	canon, err := core.Canonical(core.MustEncode(file))
	if err != nil {
		return nil, err
	}
	t := &table{
		version: digestOf(canon), source: canon, file: file, byID: map[string]*rule{}, sees: variables(),
		floor: map[Gate][]*rule{}, held: map[Gate][]*rule{}, rest: map[Gate][]*rule{},
	}
	if t.effects, err = effect.New(&file.Lists); err != nil {
		return nil, err
	}
	if t.topics, err = topic.New(file.Topics); err != nil {
		return nil, err
	}
	env, err := newEnv(t.sees)
	if err != nil {
		return nil, err
	}
	for i := range file.Rules {
		r := &rule{ruleFile: file.Rules[i]}
		if err = r.compile(env); err != nil {
			return nil, core.Errorf(core.InvalidInput, "rules.%s.when: %v", r.ID, err).With("field", "rules."+r.ID+".when")
		}
		t.byID[r.ID] = r
		for _, g := range r.Gates {
			of := t.rest
			switch {
			case r.Decision == Deny:
				of = t.floor
			case r.Floor:
				of = t.held
			}
			of[g] = append(of[g], r)
		}
	}
	return t, nil
}

// parse reads the YAML. Its decoder may panic on odd input, which then
// is a policy that can't be read.
func (f *tableFile) parse(source []byte) (err error) {
	if len(source) > maxPolicy {
		return core.Invalid("policy", fmt.Sprintf("%d bytes", len(source)), fmt.Sprintf("at most %d bytes", maxPolicy))
	}
	defer func() {
		if r := recover(); r != nil {
			err = core.Errorf(core.InvalidInput, "policy: not readable as YAML: %v", r)
		}
	}()
	tree, err := parser.ParseBytes(source, 0)
	if err != nil {
		return core.Errorf(core.InvalidInput, "policy: %v", plainYAML(err))
	}
	if len(tree.Docs) != 1 {
		return core.Errorf(core.InvalidInput, "policy: want one YAML document, got %d", len(tree.Docs))
	}
	body := tree.Docs[0].Body
	if body == nil {
		return nil
	}
	// An alias can stand for exponentially much text, and no field needs a tag.
	for _, t := range []ast.NodeType{ast.AliasType, ast.AnchorType, ast.MergeKeyType, ast.TagType} {
		if len(ast.Filter(t, body)) > 0 {
			return core.Errorf(core.InvalidInput, "policy: YAML aliases, anchors, merge keys and tags are not allowed")
		}
	}
	if err := yaml.NodeToValue(body, f, yaml.Strict()); err != nil {
		return core.Errorf(core.InvalidInput, "policy: %v", plainYAML(err))
	}
	return nil
}

// plainYAML is the error's first line, without the excerpt and colours.
func plainYAML(err error) string {
	text := yaml.FormatError(err, false, false)
	text, _, _ = strings.Cut(text, "\n")
	return text
}

func (f *tableFile) check() error {
	if f.Schema != 1 {
		return core.Invalid("schema", f.Schema, "1")
	}
	if len(f.Rules) == 0 || len(f.Rules) > maxRules {
		return core.Invalid("rules", len(f.Rules), fmt.Sprintf("1-%d rules", maxRules))
	}
	seen := map[string]bool{}
	for i, r := range f.Rules {
		switch {
		case !ruleName().MatchString(r.ID):
			return core.Invalid(fmt.Sprintf("rules[%d].id", i), r.ID, "1-64 of a-z 0-9 . _ -, starting with a letter or digit")
		case seen[r.ID]:
			return core.Invalid(fmt.Sprintf("rules[%d].id", i), r.ID, "an id that no other rule has")
		}
		seen[r.ID] = true
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *ruleFile) check() error {
	at := func(field string) string { return "rules." + r.ID + "." + field }
	for _, g := range r.Gates {
		if !slices.Contains(gates, g) {
			return core.Invalid(at("gates"), string(g), list(gates))
		}
	}
	switch {
	case len(r.Gates) == 0:
		return core.Invalid(at("gates"), "", "at least one of "+list(gates))
	case r.When == "" || len(r.When) > maxWhen:
		return core.Invalid(at("when"), r.When, fmt.Sprintf("a CEL expression of at most %d bytes; \"true\" always matches", maxWhen))
	case !slices.Contains([]Decision{Approve, Deny, HITL}, r.Decision):
		return core.Invalid(at("decision"), string(r.Decision), "approve, deny, hitl")
	case !reasonName().MatchString(r.ReasonCode):
		return core.Invalid(at("reason_code"), r.ReasonCode, "1-64 of a-z 0-9 _ .")
	case !r.Risk.valid():
		return core.Invalid(at("risk"), string(r.Risk), "low, medium, high, critical")
	case r.Confidence != nil && !(*r.Confidence >= 0 && *r.Confidence <= 1):
		return core.Invalid(at("confidence"), *r.Confidence, "0-1")
	case len(r.Rationale) > 1024:
		return core.Invalid(at("rationale"), r.Rationale, "at most 1024 bytes")
	case r.Floor && r.Decision != HITL:
		return core.Invalid(at("floor"), true, "only in a rule that asks a person; every deny rule is a floor")
	case r.Retry && (r.Decision != Deny || len(r.Gates) != 1 || r.Gates[0] != GateResult):
		return core.Invalid(at("retry"), true, "only in a deny rule of the result gate")
	}
	return r.Route.check(r.Decision == HITL, at)
}

func list[T ~string](of []T) string {
	parts := core.Map(of, func(v T) string { return string(v) })
	return strings.Join(parts, ", ")
}

// does lists the effects of an action, sorted. None means unknown.
func (t *table) does(a *Action) []string {
	switch a.Kind {
	case KindExec:
		return t.effects.OfCommand(a.Args)
	case KindSkill:
		return t.effects.OfSkill(a.Args, a.Effects)
	case KindMCP:
		return t.effects.OfCall(a.Tool, a.Args, a.Effects)
	case KindCAD:
		return slices.Sorted(slices.Values(a.Effects)) // whoever asks knows the methods
	}
	return t.effects.OfTool(a.Tool, a.Args, a.Effects)
}

// applies reports whether the rule is about this kind of action.
func (r *rule) applies(kind string) bool {
	return len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind)
}

// Where a mistake of a proposal stands: details of its error.
const (
	detailIn   = "in"   // inSource or inTests
	detailLine = "line" // from 1

	inSource = "source"
	inTests  = "tests"
)

// yamlPlace is how the YAML parser says where something stands.
var yamlPlace = core.Pattern(`^policy: \[(\d+):\d+\] `)

// placed says which line of a table an error is about, as far as that is known.
func placed(source []byte, err error) error {
	if err == nil {
		return nil
	}
	e := core.AsError(err).With(detailIn, inSource)
	if at := yamlPlace().FindStringSubmatch(e.Message); at != nil {
		e.Message = "policy: line " + at[1] + ": " + strings.TrimPrefix(e.Message, at[0])
		line, _ := strconv.Atoi(at[1])
		return e.With(detailLine, line)
	}
	field, _ := e.Details["field"].(string)
	if line := lineOf(source, field); line > 0 {
		e.Message += " (line " + strconv.Itoa(line) + ")"
		return e.With(detailLine, line)
	}
	return e
}

// lineOf finds a field such as rules.NAME.when, rules[2].id or schema in a
// table; 0 when it is not there.
func lineOf(source []byte, field string) int {
	r := document.NewReader("policy.yaml")
	root, ok := r.Parse(source, maxPolicy)
	top, rest, _ := strings.Cut(field, ".")
	top, index, _ := strings.Cut(strings.TrimSuffix(top, "]"), "[")
	at := root.Field(top)
	if !ok || at.Kind() == document.Nothing {
		return 0
	}
	id, name := rest[:max(strings.LastIndexByte(rest, '.'), 0)], rest[strings.LastIndexByte(rest, '.')+1:] // an id may have dots
	if top != "rules" || rest == "" {
		return at.Line()
	}
	rules := document.Each(r, at, func(v document.Value) document.Value { return v })
	i := slices.IndexFunc(rules, func(v document.Value) bool { return r.Text(v.Field("id")) == id })
	if index != "" {
		i, _ = strconv.Atoi(index)
	}
	if i < 0 || i >= len(rules) {
		return at.Line()
	}
	return rules[i].Field(name).Line()
}
