package resource

import (
	"strings"
	"testing"
	"time"
)

func TestAForkOfAForkDoesNotKnowWhoHadTheNamesBefore(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.says("ada", "by the ada before")
		time.Sleep(time.Second)
		r.people.add("ada") // made again
		var made Made
		r.people.onFork = func(m Made) error { made = m; return nil }
		_, err := r.fork(r.says("ada", "by ada"), "bob", nil)
		r.No(err)
		f, err := r.Fork(r.T.Context(), alice, ForkRequest{AgentID: "bob", At: r.says("bob", "by bob"), Name: "eve"})
		r.No(err)
		past, err := r.Past(r.T.Context(), acme, made.Origin, f.Dir)
		r.No(err)
		if strings.Contains(past, "before") || !strings.Contains(past, "{\"user\":\"by ada\"}\n{\"user\":\"by bob\"}\n") {
			t.Errorf("eve is told:\n%s", past)
		}
	})
}
