package resource

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

func TestAForkOfAForkDoesNotKnowWhoHadTheNamesBefore(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.says("ada", "by the ada before")
		time.Sleep(time.Second)
		r.people.add("ada") // made again
		var made Made
		r.people.onFork = func(m Made) error { made = m; return nil }
		expect.Of(r.fork(r.says("ada", "by ada"), "bob", nil))(r.T)
		f := expect.Of(r.Fork(r.T.Context(), alice, ForkRequest{AgentID: "bob", At: r.says("bob", "by bob"), Name: "eve"}))(r.T)
		past := expect.Of(r.Past(r.T.Context(), acme, made.Origin, f.Dir))(r.T)
		expect.True(t, !strings.Contains(past, "before") && strings.Contains(past, "{\"user\":\"by ada\"}\n{\"user\":\"by bob\"}\n"), "eve is told:\n%s", past)
	})
}
