package mcp

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// TestACallThatWasGivenUpIsMadeAgainOnlyIfItDidNothing: a client that lost the
// answer asks again by the same name.
func TestACallThatWasGivenUpIsMadeAgainOnlyIfItDidNothing(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		var o once
		o.init()
		effects := 0
		call := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{
			Meta: mcp.Meta{CallIDKey: "one"}, Name: "send_message", Arguments: []byte(core.Raw(`{}`)),
		}}
		ctx, giveUp := context.WithCancel(t.Context())
		_, err := o.do(ctx, person, call, func(ctx context.Context, _ string) (*mcp.CallToolResult, bool, error) {
			effects++
			giveUp()
			return nil, allowed, ctx.Err()
		})
		expect.Err(t, err, context.Canceled)
		_, _ = o.do(t.Context(), person, call, func(context.Context, string) (*mcp.CallToolResult, bool, error) {
			effects++
			return &mcp.CallToolResult{}, true, nil
		})
		want := map[bool]int{true: 1, false: 2}[allowed]
		expect.True(t, effects == want, "allowed %v: %d effects, want %d", allowed, effects, want)
	}
}
