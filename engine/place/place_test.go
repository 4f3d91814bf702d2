package place_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
)

func TestWhatLiesOnAnotherMachineIsAwayWhateverLiesAtItsPathHere(t *testing.T) {
	there := t.TempDir()
	err := place.Place("deck1/abc").Away("deck2/def", "the tree of bob", there)
	if !errors.Is(err, core.Kind(core.Unavailable)) || !strings.HasPrefix(err.Error(), "the tree of bob: on deck1, at "+there) {
		t.Error(err)
	}
	for _, p := range []place.Place{"", "deck2/def"} {
		if err := p.Away("deck2/def", "it", "/nowhere"); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestWhatIsNamedFromElsewhereIsReachedWhereItIsThere(t *testing.T) {
	there := t.TempDir()
	if err := place.Place("deck1/abc").Away("", "it", there); err != nil {
		t.Error(err)
	}
	if err := place.Place("deck1/abc").Away("", "it", filepath.Join(there, "none")); err == nil {
		t.Error("it is there")
	}
}
