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
	if s.Hears() == nil || s.Steer("too early", "") == nil {
		t.Error("it hears before it has a task")
	}
	done := make(chan task.Outcome, 1)
	go func() {
		out, err := h.Prompt(t.Context(), w.prompt("go"))
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	expect.Await(t, "that it works", func() bool { return len(w.texts("log")) > 0 })
	expect.No(t, s.Steer("use the\nother", "file:///x"))
	if out := <-done; out.Status != task.Succeeded {
		t.Errorf("outcome %+v", out)
	}
	expect.Has(t, strings.Join(w.texts("log"), "|"), `{"type":"message","text":"use the\nother","uri":"file:///x"}`, "it read")
	if got := w.texts("prompt"); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}
