package engine

import (
	"slices"
	"testing"

	"swarmdeck/expect"
)

// What an approval is about may have left: it is shown all the same.
func TestACardOfATaskThatLeftIsShown(t *testing.T) {
	e, _ := open(t)
	expect.Of(e.Swarm.CreateTenant(t.Context(), alice, alice.Tenant))(t)
	for _, id := range ask(t, e, 1) {
		card, err := e.Judge.Card(t.Context(), alice.Tenant, id)
		expect.True(t, err == nil && slices.Contains(card.Around.Behind, "task "+card.TaskID+", which can't be read"), "%+v, %v", card.Around, err)
	}
}
