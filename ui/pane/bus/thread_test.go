package bus

import (
	"strings"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

func TestConversationsStandTogetherInTheirOrder(t *testing.T) {
	var messages []bus.Message
	for _, m := range []string{"a", "b 1", "c", "d 2", "e 1", "f", "g 1"} {
		id, talk, _ := strings.Cut(m, " ")
		messages = append(messages, bus.Message{MessageID: id, CorrelationID: talk})
	}
	var got []string
	for _, l := range threads(messages) {
		got = append(got, l.place.lead(screen.ASCII())+l.MessageID)
	}
	want := "b,|- e,`- g,f,d,c,a"
	expect.Must(t, strings.Join(got, ",") == want, "%s, want %s", strings.Join(got, ","), want)
}
