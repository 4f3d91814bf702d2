package mcp

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"swarmdeck/expect"
)

var update = flag.Bool("update", false, "write the expected files anew")

// TestTheInventoryOfTools: a tool, a parameter or a member of a result that is
// lost or changes its shape is a change that is meant.
func TestTheInventoryOfTools(t *testing.T) {
	var out bytes.Buffer
	line := func(format string, v any, args ...any) {
		data := expect.Of(json.Marshal(v))(t)
		fmt.Fprintf(&out, format+" %s\n", append(args, data)...)
	}
	for _, tool := range NewServer(nil, Options{}).order {
		d := tool.declare()
		line("%s: %s; needs", d.InputSchema.(*jsonschema.Schema).Required, d.Name, d.Description)
		line("  hints", d.Annotations)
		params := d.InputSchema.(*jsonschema.Schema)
		for _, name := range params.PropertyOrder {
			line("  in %s", params.Properties[name], name)
		}
		members := d.OutputSchema.(*jsonschema.Schema).Properties
		for _, name := range slices.Sorted(maps.Keys(members)) {
			line("  out %s", members[name], name)
		}
	}
	path := filepath.Join("testdata", "tools.txt")
	if *update {
		expect.No(t, os.WriteFile(path, out.Bytes(), 0o600))
	}
	want := expect.Of(os.ReadFile(path))(t)
	expect.True(t, bytes.Equal(want, out.Bytes()), "the tools are others than those of testdata/tools.txt; -update writes it anew: look at the difference")
}
