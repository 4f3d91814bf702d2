package exec

import (
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAMessageIsALineOfTheAgentsInput(t *testing.T) {
	h, w := openAgent(t, "sh", "-c", `read -r task; echo ready; read -r line; printf '{"type":"message","text":"heard"}\n'; printf "%s\n" "$line"; printf '{"type":"result","status":"succeeded","output":{}}\n'; read -r more`)
	s := h.(fleet.Steerer)
	expect.True(t, s.Hears() != nil && s.Steer("too early", "") != nil, "it hears before it has a task")
	done := expect.Later(func() task.Outcome {
		out, err := h.Prompt(t.Context(), w.prompt("go"))
		expect.Is(t, err, nil)
		return out
	})
	expect.Await(t, "that it works", func() bool { return len(w.texts("log")) > 0 })
	expect.No(t, s.Steer("use the\nother", "file:///x"))
	out := <-done
	expect.True(t, out.Status == task.Succeeded, "outcome %+v", out)
	expect.Has(t, strings.Join(w.texts("log"), "|"), `{"type":"message","text":"use the\nother","uri":"file:///x"}`, "it read")
	got := w.texts("prompt")
	expect.True(t, len(got) == 1, "told %q", got)
}
