package env_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// lines are messages to begin from.
func lines() (all [][]byte) {
	for i, b := range everyBadInput {
		all = append(all, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i, b.method, b.params))
	}
	for _, line := range []string{
		`[{"jsonrpc":"2.0","id":"a","method":"entity.list"},{"jsonrpc":"2.0","method":"history.undo"},7]`,
		`{"jsonrpc":"2.0","id":1,"method":"entity.create_arc","params":{"center":[0,0],"radius":5,"start_angle":0,"end_angle":2}}`,
		`{"jsonrpc":"2.0","id":1,"method":"entity.create_line","params":{"start":[0,0],"end":"ball.x"}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"history.redo"}`,
		`{"jsonrpc":"2.0","id":1,"method":"constraint.apply","params":{"constraint_type":"distance","entity_ids":["line"],"parameters":{"distance":7}}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`,
		`{"jsonrpc":"2.0","id":"x","method":"solid.extrude","params":{"entity_ids":["circle"],"distance":3}}`,
		"\xff\xfe", "{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"x\"}", strings.Repeat("[", 20000),
	} {
		all = append(all, []byte(line))
	}
	return all
}

// FuzzServe feeds any bytes to an environment: it answers each line that wants
// an answer with JSON-RPC 2.0, and what refuses changes nothing.
func FuzzServe(f *testing.F) {
	for _, line := range lines() {
		f.Add(line)
	}
	e := expect.Of(env.New(context.Background(), env.Options{Open: engine.Open, Dir: f.TempDir()}))(f)
	f.Cleanup(func() { e.Close() })
	ask := func(t *testing.T, text string) []string {
		var out bytes.Buffer
		expect.No(t, e.Serve(t.Context(), strings.NewReader(text), &out))
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	const look = `{"jsonrpc":"2.0","id":0,"method":"entity.list","params":{"limit":1000,"workspace_id":"main"}}` + "\n"
	f.Fuzz(func(t *testing.T, data []byte) {
		before := ask(t, look)
		answers := ask(t, string(data)+"\n")
		after := ask(t, look)
		refused := true
		for _, line := range answers {
			if line == "" {
				refused = refused && len(answers) == 1 && !bytes.Contains(data, []byte("method"))
				continue
			}
			var list []core.Raw
			if strings.HasPrefix(line, "[") {
				expect.No(t, core.Decode([]byte(line), &list), line)
			} else {
				list = []core.Raw{core.Raw(line)}
			}
			for _, one := range list {
				var r response
				expect.No(t, core.Decode(one, &r), one, "is no answer")
				expect.Must(t, r.Version == "2.0" && (r.Method != "" || (r.Error == nil) != (r.Result == nil)), "%q is no answer", one)
				if r.Error != nil && (r.Error.Data.Name == "" || r.Error.Data.Name == "INTERNAL_ERROR") {
					t.Fatalf("%q is no refusal", one)
				}
				refused = refused && r.Error != nil
			}
		}
		if refused && strip(before[0]) != strip(after[0]) && !bytes.Contains(data, []byte("\n")) {
			t.Fatalf("%q was refused and changed\n%s\n%s", data, before[0], after[0])
		}
	})
}

// strip takes the time out of an answer.
func strip(line string) string {
	i := strings.LastIndex(line, `"metadata"`)
	return line[:max(i, 0)]
}

// FuzzRecipe reads the params of any shape.
func FuzzRecipe(f *testing.F) {
	for _, p := range []string{
		`{"profile":{"loops":[[{"from":[0,0],"to":[1,0]},{"from":[1,0],"to":[0,1]},{"from":[0,1],"to":[0,0]}]]},"origin":[0,0,0],"x_axis":[1,0,0],"y_axis":[0,1,0],"vector":[0,0,1]}`,
		`{"point":[0,0,0],"axis":[0,0,1],"radius":5,"height":4,"tolerance":0.1}`, `{"matrix":[[1,0,0],[0,1,0],[0,0,1],[1,2,3]]}`, `{}`, `{"count":3,"direction":[1,0,0],"spacing":4}`,
	} {
		for _, op := range []string{"extrude", "cylinder", "transform", "union", "pattern_linear", "box"} {
			f.Add(op, []byte(p), 1)
		}
	}
	f.Fuzz(func(t *testing.T, op string, params []byte, inputs int) {
		checkRecipe(t, op, params, max(0, min(inputs, 5)))
	})
}
