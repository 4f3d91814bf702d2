package dag

import (
	"reflect"
	"slices"
	"testing"

	"swarmdeck/expect"
)

// What is content and what is a reference decides what an erasure leaves of an event.
func TestWhatOfAnEventIsContent(t *testing.T) {
	var found []string
	seen := map[reflect.Type]bool{}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if seen[of] {
			return
		}
		seen[of] = true
		for _, m := range membersOf(of) {
			if m.erase {
				found = append(found, of.Name()+"."+m.name)
			} else if m.nested {
				look(of.Field(m.index).Type)
			}
		}
	}
	for _, b := range bodies {
		look(reflect.TypeOf(b))
	}
	for _, b := range nodeBodies {
		look(reflect.TypeOf(b))
	}
	slices.Sort(found)
	expect.Same(t, found, []string{
		"ContentPart.input", "ContentPart.output", "ContentPart.text", "ContentPart.url", "Fault.details", "Fault.message",
		"MCPResourceUpdated.summary", "ModelRequest.params", "ModelRequest.tools_spec", "PolicyActivated.notes", "Subagent.constraints",
		"Substitution.reason", "ToolCall.args", "ToolResult.result",
	})
}
