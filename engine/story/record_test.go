package story

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestACallIsToldAsOneWouldTypeItWithWhatCameOfIt(t *testing.T) {
	for _, c := range []struct {
		args   string
		result string
		status dag.CallStatus
		want   string
		bad    bool
	}{
		{`{"command":"ls -la\nrm x"}`, `{"exit_code":0}`, dag.CallOK, "ran ls -la …: exit 0", false},
		{`{"argv":["go","test","./a b"]}`, `{"rc":1}`, dag.CallOK, "tests go test './a b': exit 1", true},
		{`{"path":"src/a.go"}`, `{"exitCode":0}`, dag.CallOK, "ran tool src/a.go", false},
		{`{"n":1}`, ``, dag.CallTimeout, `ran tool {"n":1}: timeout`, true},
		{``, `7`, dag.CallError, "ran tool: error", true},
	} {
		l := ran(&dag.ToolCall{Tool: "tool", Args: core.Raw(c.args)}, &dag.ToolResult{Status: c.status, Result: core.Raw(c.result)})
		expect.Is(t, l.What+" "+l.Text, c.want, c.args)
		expect.Is(t, l.Bad, c.bad, c.args)
	}
}

func TestWhatIsAlikeIsFolded(t *testing.T) {
	read := Line{What: "ran", Text: "read a", like: "read"}
	edit := said("diff", &dag.Message{Content: []dag.ContentPart{{Type: "text", Text: "a.go\n--- a.go\n+++ a.go\n+x\n+y\n-z"}}})
	all := folded([]Line{read, read, read, edit, edit, {What: "said", Text: "done"}, {What: "said", Text: "done"}})
	var told string
	for i := range all {
		told += all[i].What + " " + all[i].String() + "\n"
	}
	expect.Is(t, told, "ran read a (the last of 3)\nedited a.go +4 -2 (the last of 2)\nsaid done\nsaid done\n", "folded")
}
