package pane

import (
	"slices"
	"testing"

	"swarmdeck/expect"
)

func TestAListNarrowsByColumnsOfItsOwn(t *testing.T) {
	f, err := EngineFilter("tag:motion the TAG:arm status:failed tag: x:y arm")
	expect.No(t, err)
	if got := FilterWord(&f, "tag"); !slices.Equal(got, []string{"motion", "arm"}) {
		t.Errorf("tags are %q", got)
	}
	if f.Match != "the tag: x:y arm" || f.Status != "failed" {
		t.Errorf("the rest is %q, status %q", f.Match, f.Status)
	}
	if got := FilterWord(&f, "tag"); got != nil {
		t.Errorf("again: %q", got)
	}
}
