package docker

import (
	"testing"

	"swarmdeck/expect"
)

func TestTheLastLineOfAnErrorIsTold(t *testing.T) {
	for text, want := range map[string]string{"one\ntwo\nthree \n\n": "three", "one": "one", "": ""} {
		expect.Is(t, lastLine(text), want, text)
	}
}
