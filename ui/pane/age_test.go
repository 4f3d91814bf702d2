package pane

import (
	"testing"
	"time"

	"swarmdeck/engine/face"
	"swarmdeck/expect"
)

func TestTookFitsInSixCells(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 0: "0ms", 850 * time.Millisecond: "850ms", 1290 * time.Millisecond: "1.2s", 59_990 * time.Millisecond: "59.9s",
		time.Minute: "1m00s", 185 * time.Second: "3m05s", 99*time.Minute + 59*time.Second: "99m59s", 100 * time.Minute: "1h", 1000 * time.Hour: "41d",
	} {
		got := face.Took(d)
		expect.True(t, got == want && len(got) <= 6, "%v is %q, want %q", d, got, want)
	}
	expect.Is(t, Millis(1500), "1.5s", "1500 ms are")
}
