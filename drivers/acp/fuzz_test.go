package acp

import (
	"context"
	"sync"
	"testing"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// FuzzAnUpdateIsHeardOrLogged feeds a session what no agent should say.
func FuzzAnUpdateIsHeardOrLogged(f *testing.F) {
	for _, seed := range []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}`, `{"sessionUpdate":"plan","entries":[{"content":1}]}`,
		`{"sessionUpdate":"tool_call","toolCallId":"a","status":"completed","content":[{"type":"diff","path":"p","newText":"n"}],"rawOutput":[1]}`,
		`{"sessionUpdate":"usage_update","used":9e18,"cost":{"amount":1e308,"currency":"USD"}}`, `{"sessionUpdate":"current_mode_update"}`,
		`{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","category":"mode","currentValue":"x","options":[{"options":[{}]}]}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"a","rawInput":{"a":1,"a":2},"title":null,"kind":7}`, `{}`, `[]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := &agent{}
		a.Keep = keeper.New(context.Background(), &sync.Mutex{}, fleet.Agent{}, func(fleet.Health) {}, func() int { return 0 }, func() {})
		s := a.newSession(nil, "s")
		emitted := 0
		turn := newTurn(context.Background(), fleet.Prompt{Emit: func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
			emitted++
			expect.True(t, len(e.Text) <= maxLogLine+64, "a %s of %d bytes", e.Type, len(e.Text))
			return fleet.ToolAnswer{}, nil
		}, Beat: func() {}})
		turn.s, a.Turn = s, turn
		s.turn.Store(turn)
		s.update(core.Raw(data))
		turn.flushTalk()
		for _, c := range turn.calls {
			args := c.args()
			expect.True(t, args.IsValid(), "args %q", args)
		}
		turn.closeCalls("over")
		var end stopped
		if jsonrpc.Decode(core.Raw(data), &end) == nil {
			turn.settleUsage(end)
			_ = turn.judged(end.StopReason)
		}
		turn.Close()
	})
}
