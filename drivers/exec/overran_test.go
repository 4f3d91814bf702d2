package exec

import (
	"testing"

	"swarmdeck/expect"
)

func TestACommandThatTookTooMuchMemoryIsNotTriedAgain(t *testing.T) {
	e := runOutput{RC: 137, Signal: "SIGKILL", overran: "was ended because it exceeded its memory of 64 MiB"}.failure()
	expect.True(t, e.Code == "limit_exceeded" && !e.Retryable && e.Message == "was ended because it exceeded its memory of 64 MiB", "%+v", e)
	e = (runOutput{RC: 137, Signal: "SIGKILL"}).failure()
	expect.True(t, e.Code == "killed" && e.Retryable, "%+v", e)
}
