package dag

import (
	"encoding/binary"
	"testing"

	"swarmdeck/expect"
)

func TestWhatIsRememberedOfATalkIsBoundedAndNew(t *testing.T) {
	r := &Recording{models: modelTalk{known: map[[32]byte]string{}}}
	var last [32]byte
	for i := range 3 * maxKnown {
		binary.BigEndian.PutUint64(last[:], uint64(i))
		r.know(map[[32]byte]string{last: "m"})
		expect.Must(t, len(r.models.known) <= maxKnown && r.models.known[last] != "",
			"after %d messages %d are known, of the last %q", i+1, len(r.models.known), r.models.known[last])
	}
}
