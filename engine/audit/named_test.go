package audit

import (
	"testing"

	"swarmdeck/expect"
)

// Whatever stands in the list of a log's keys, a line is a key that is written as it
// was read, or none.
func FuzzNamedKeys(f *testing.F) {
	f.Add("a+b+c 1")
	f.Add("a+b+c 12 c2ln")
	f.Add("a+b+c 12 - audit.key.retired a+b+c")
	f.Add("a+b+c 12 c2ln audit.key.trusted a+b+c c2ln")
	f.Fuzz(func(t *testing.T, line string) {
		k, ok := readNamedLine(line, "before")
		if !ok {
			return
		}
		again, ok := readNamedLine(string(namedText([]namedKey{k})), "")
		expect.True(t, ok && again == k, "%q: %+v, then %+v", line, k, again)
		_, _ = keysOf("t_acme", []namedKey{k, k})
	})
}

func FuzzKeyRequest(f *testing.F) {
	f.Add("QUFB")
	f.Fuzz(func(t *testing.T, text string) {
		public, signature, err := readRequest(text)
		if err == nil && (len(text) != 128 || len(public) != 44 || len(signature) != 88) {
			t.Errorf("%q: %q %q", text, public, signature)
		}
	})
}
