package core_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestAUUIDCarriesItsTenantAndSequenceNumber(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for _, seq := range []uint64{0, 1, 42, 1<<48 - 1} {
		id := core.NewUUID("t_acme", seq, nil)
		expect.True(t, shape.MatchString(id) && core.IsUUID(id), "%s is no version 4 UUID", id)
		got, err := core.LocalUUID("agent_id", "t_acme", id)
		expect.True(t, err == nil && got == seq, "LocalUUID(%s) = %d, %v, want %d", id, got, err, seq)
		expect.Err(t, expect.Fault(core.LocalUUID("agent_id", "t_other", id)), core.ErrForeign, "another tenant's id")
	}
	same := func() string { return core.NewUUID("t_acme", 7, bytes.NewReader(make([]byte, 7))) }
	a, b := same(), same()
	expect.True(t, a == b, "the same random bytes gave %s and %s", a, b)
}

func TestWhatIsNoUUIDIsRefusedByName(t *testing.T) {
	for _, id := range []string{
		"", "x", "a7f3c2e1-8d4b-1a9c-9e2f-1b3c4d5e6f7a", "A7F3C2E1-8D4B-4A9C-9E2F-1B3C4D5E6F7A",
		"a7f3c2e18d4b4a9c9e2f1b3c4d5e6f7a", "a7f3c2e1-8d4b-4a9c-ce2f-1b3c4d5e6f7a", "g7f3c2e1-8d4b-4a9c-9e2f-1b3c4d5e6f7a",
	} {
		_, err := core.LocalUUID("agent_id", "t_acme", id)
		expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && core.AsError(err).Details["field"] == "agent_id",
			"%q: %v, want INVALID_INPUT naming agent_id", id, err)
	}
}
