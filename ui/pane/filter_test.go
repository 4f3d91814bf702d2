package pane

import (
	"testing"

	"swarmdeck/expect"
)

func TestAListNarrowsByColumnsOfItsOwn(t *testing.T) {
	f := expect.Of(EngineFilter("tag:motion the TAG:arm status:failed tag: x:y arm"))(t)
	expect.Same(t, FilterWord(&f, "tag"), []string{"motion", "arm"}, "tags are")
	if f.Match != "the tag: x:y arm" || f.Status != "failed" {
		t.Errorf("the rest is %q, status %q", f.Match, f.Status)
	}
	if got := FilterWord(&f, "tag"); got != nil {
		t.Errorf("again: %q", got)
	}
}
