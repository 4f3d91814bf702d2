package schema

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestSchemasThatWouldNeverEndAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"$ref":"#"}`: "a reference leads back to where it stands",
		`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"allOf":[{"$ref":"#/$defs/c"}]},"c":{"$ref":"#/$defs/b"}}}`: "a reference leads back to where it stands",
		doubling(40): "asks for more than 1000 checks of one value",
	} {
		violations := Check(core.Raw(text))
		expect.True(t, len(violations) == 1 && strings.Contains(violations[0].Message, want), "%.80s: %+v, want %s", text, violations, want)
	}
	tree := `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"all":{"type":"array","items":{"$ref":"#"}}}}}}`
	violations := Check(core.Raw(tree))
	expect.True(t, violations == nil, "a tree: %+v", violations)
}

// doubling is a schema of n levels, each of which asks twice for the next.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range n {
		next := string(rune('0' + (i+1)%10))
		if i+1 >= 10 {
			next = string(rune('0'+(i+1)/10)) + next
		}
		at := string(rune('0' + i%10))
		if i >= 10 {
			at = string(rune('0'+i/10)) + at
		}
		b.WriteString(`"l` + at + `":{"allOf":[{"$ref":"#/$defs/l` + next + `"},{"$ref":"#/$defs/l` + next + `"}]},`)
	}
	b.WriteString(`"l` + string(rune('0'+n/10)) + string(rune('0'+n%10)) + `":{}}}`)
	return b.String()
}
