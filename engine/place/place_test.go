package place_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
	"swarmdeck/expect"
)

func TestWhatLiesOnAnotherMachineIsAwayWhateverLiesAtItsPathHere(t *testing.T) {
	there := t.TempDir()
	err := place.Place("deck1/abc").Away("deck2/def", "the tree of bob", there)
	expect.True(t, errors.Is(err, core.Kind(core.Unavailable)) && strings.HasPrefix(err.Error(), "the tree of bob: on deck1, at "+there), "%v", err)
	for _, p := range []place.Place{"", "deck2/def"} {
		expect.No(t, p.Away("deck2/def", "it", "/nowhere"), p)
	}
}

func TestWhatIsNamedFromElsewhereIsReachedWhereItIsThere(t *testing.T) {
	there := t.TempDir()
	expect.No(t, place.Place("deck1/abc").Away("", "it", there))
	expect.Fails(t, place.Place("deck1/abc").Away("", "it", filepath.Join(there, "none")), "it is there")
}
