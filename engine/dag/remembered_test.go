package dag

import (
	"encoding/binary"
	"testing"
)

func TestWhatIsRememberedOfATalkIsBoundedAndNew(t *testing.T) {
	r := &Recording{models: modelTalk{known: map[[32]byte]string{}}}
	var last [32]byte
	for i := range 3 * maxKnown {
		binary.BigEndian.PutUint64(last[:], uint64(i))
		r.know(map[[32]byte]string{last: "m"})
		if len(r.models.known) > maxKnown || r.models.known[last] == "" {
			t.Fatalf("after %d messages %d are known, of the last %q", i+1, len(r.models.known), r.models.known[last])
		}
	}
}
