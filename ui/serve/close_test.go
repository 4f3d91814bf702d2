package serve_test

import (
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/serve"
)

// TestAServerThatHasHardlyBegunCloses is what a short command does: it ends
// before anybody had time to listen.
func TestAServerThatHasHardlyBegunCloses(t *testing.T) {
	for range 200 {
		r := newRoom(t, serve.Options{})
		closed := make(chan error, 1)
		go func() { closed <- r.server.Close() }()
		expect.No(t, expect.From(t, closed, "it does not close"))
	}
}
