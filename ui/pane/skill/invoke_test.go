package skill

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
)

func made(name, params, returns string) *skill.Skill {
	return &skill.Skill{Name: name, Version: "1.0.0", ParametersSchema: core.Raw(params), ReturnsSchema: core.Raw(returns)}
}

// shown is a form's fields in a line: name, * when required, = and the default.
func shown(order ...*skill.Skill) string {
	var b strings.Builder
	for _, f := range paramFields(order) {
		b.WriteString(f.Name)
		if f.Required {
			b.WriteByte('*')
		}
		if f.Default != nil {
			fmt.Fprintf(&b, "=%s", f.Default)
		}
		if f.Description != "" {
			fmt.Fprintf(&b, " (%s)", f.Description)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestAFormAsksForTheWholeChain(t *testing.T) {
	look := made("look", `{"properties":{"area":{"type":"string"},"speed":{"default":1}},"required":["area"]}`, `{"properties":{"thing":{"type":"string"},"grip":{}}}`)
	take := made("take", `{"properties":{"thing":{"type":"string"},"grip":{"default":3,"description":"how tight"},"speed":{"default":2}},"required":["thing","speed"]}`, "")
	want := `thing (else from look)
grip (how tight (else from look))
speed*=2
area* (for look)
`
	got := shown(look, take)
	expect.True(t, got == want, "the form has\n%swant\n%s", got, want)
}

func TestAFormOfOneSkillIsItsSchema(t *testing.T) {
	want := "a*\nb=[1]\n"
	got := shown(made("one", `{"properties":{"a":true,"b":{"default":[1]}},"required":["a"]}`, `{"properties":{"a":{}}}`))
	expect.True(t, got == want, "the form has\n%swant\n%s", got, want)
	f := invokeForm([]*skill.Skill{made("one", `{}`, "")})
	expect.Is(t, strings.Join(f.Line(core.Raw(`{"a":"--yes"}`)), "|"), `skill|invoke|one@1.0.0|--params|{"a":"--yes"}`, "the line is")
}

func TestWhatTakesAnyParametersHasAFieldForThem(t *testing.T) {
	order := []*skill.Skill{made("any", `{"type":"object"}`, ""), made("one", `{"properties":{"a":{}}}`, "")}
	got, want := shown(order...), "a\nand more (any further parameters, as an object)\n"
	expect.True(t, got == want, "the form has %q, want %q", got, want)
	f := invokeForm(order)
	for object, want := range map[string]string{
		`{"a":1,"and more":{"c":3,"b":2}}`: `{"a":1,"b":2,"c":3}`, `{"a":1}`: `{"a":1}`, `{"and more":{}}`: `{}`,
	} {
		expect.No(t, f.Check(core.Raw(object)), object)
		expect.Is(t, f.Line(core.Raw(object))[4], want, object, "gives")
	}
	for object, want := range map[string]string{`{"and more":[1]}`: "a JSON object", `{"a":1,"and more":{"a":2}}`: "no field of their own"} {
		expect.Says(t, f.Check(core.Raw(object)), want, object)
	}
}
