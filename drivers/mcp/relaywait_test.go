package mcp

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// TestACallThatWaitsHoldsNoOtherUp is about an agent's way to the engine: while
// a person is asked, other calls go through, and so does giving up.
func TestACallThatWaitsHoldsNoOtherUp(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			tokens := &Tokens{}
			token := expect.Of(tokens.Issue(sony))(t)
			url := h.web(t, tokens)
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // ends a hang behind the call that waits
			defer cancel()
			relayed := make(chan error, 1)
			go func() { relayed <- Relay(ctx, url, token, inR, outW) }()
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
				Connect(ctx, &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: era})
			expect.No(t, err)
			write := func(ctx context.Context) chan error {
				over := make(chan error, 1)
				go func() {
					_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "publish_message", Arguments: map[string]any{"topic": "a.b", "payload": map[string]any{}}})
					over <- err
				}()
				return over
			}
			waits := write(t.Context())
			expect.Await(t, "the question", func() bool {
				open, err := h.eng.Judge.Open(t.Context(), lab)
				return err == nil && len(open) == 1
			})
			for range 2 * maxUnderway { // an answer makes room for others
				use(t, cs, "list_skills", nil, nil)
			}
			use(t, cs, "list_agents", nil, nil)
			h.answer(t, "publish_message", judge.Answer{Approve: true, Reason: "fine"})
			expect.No(t, <-waits)
			gives, giveUp := context.WithCancel(t.Context())
			over := write(gives)
			h.voids(t, giveUp)
			<-over
			_ = cs.Close()
			expect.No(t, <-relayed)
		})
	}
}
