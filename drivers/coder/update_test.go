package coder

import (
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/drivers/sse"
	"swarmdeck/expect"
)

func FuzzUpdates(f *testing.F) {
	f.Add("event: message_update\ndata: {\"id\":1,\"role\":\"agent\",\"message\":\"hi\"}\n\n")
	f.Add("event: status_change\ndata: {\"status\":\"stable\"}\n\n")
	f.Add(":\n\ndata\r\n\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		_ = sse.Each(strings.NewReader(s), maxEvent, func(kind string, data []byte) error {
			u, ok := readUpdate(kind, data)
			if ok && u.status != "" && u.status != "stable" && u.status != "running" {
				t.Errorf("status %q", u.status)
			}
			text := tidy(u.Content)
			expect.True(t, utf8.ValidString(text), "invalid %q", text)
			return nil
		})
	})
}
