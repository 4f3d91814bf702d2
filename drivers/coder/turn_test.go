package coder

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestAnAgentThatTalksWithoutEndFillsNoMemory(t *testing.T) {
	warned, held := 0, 0
	turn := &turn{
		Turn: keeper.NewTurn(t.Context(), fleet.Prompt{Emit: func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
			if e.Level == "WARN" && strings.Contains(e.Text, "left out") {
				warned++
			}
			return fleet.ToolAnswer{}, nil
		}}),
	}
	turn.talk = newTalk(-1, maxHeld, turn.pass)
	text := strings.Repeat("a", 1<<20)
	for id := range 100 {
		turn.take(message{ID: id, Role: "agent", Content: text})
		turn.take(message{ID: id, Role: "agent", Content: text + "b"}) // the same one, longer
	}
	for _, text := range turn.texts {
		held += len(text)
	}
	expect.True(t, held <= maxHeld && held >= maxHeld/2 && warned == 1, "%d bytes are held, %d warnings", held, warned)
}
