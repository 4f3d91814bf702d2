package bus_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// Whatever is accepted can be read again: a payload nested as deeply as it may
// be is no trap for its reader.
func TestADeepPayloadIsReadAgainOrRefused(t *testing.T) {
	r := newRig(t)
	for _, depth := range []int{100, 500, 1000, 5000, 9990, 9996, 9997, 9998, 9999, 10_000, 10_001} {
		payload := core.Raw(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)
		m, err := r.Accept(t.Context(), alice, bus.Send{Recipient: "ann", Payload: payload})
		if err != nil {
			expect.Is(t, code(err), core.InvalidInput, depth, err)
			continue
		}
		_, err = r.Get(t.Context(), acme, m.MessageID)
		expect.No(t, err, "depth", depth, "was accepted")
		got := r.read("ann", 1)
		expect.Must(t, len(got) == 1, "depth %d: read %d", depth, len(got))
	}
	r.whole()
}
