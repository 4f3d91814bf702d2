package exec

import "testing"

func TestACommandThatTookTooMuchMemoryIsNotTriedAgain(t *testing.T) {
	e := runOutput{RC: 137, Signal: "SIGKILL", overran: "was ended because it exceeded its memory of 64 MiB"}.failure()
	if e.Code != "limit_exceeded" || e.Retryable || e.Message != "was ended because it exceeded its memory of 64 MiB" {
		t.Errorf("%+v", e)
	}
	if e := (runOutput{RC: 137, Signal: "SIGKILL"}).failure(); e.Code != "killed" || !e.Retryable {
		t.Errorf("%+v", e)
	}
}
