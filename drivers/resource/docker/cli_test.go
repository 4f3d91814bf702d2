package docker

import "testing"

func TestTheLastLineOfAnErrorIsTold(t *testing.T) {
	for text, want := range map[string]string{"one\ntwo\nthree \n\n": "three", "one": "one", "": ""} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
