package pane

import (
	"testing"

	"swarmdeck/expect"
)

func TestAListNarrowsByColumnsOfItsOwn(t *testing.T) {
	f := expect.Of(EngineFilter("tag:motion the TAG:arm status:failed tag: x:y arm", Env{}))(t)
	expect.Same(t, FilterWord(&f, "tag"), []string{"motion", "arm"}, "tags are")
	expect.True(t, f.Match == "the tag: x:y arm" && f.Status == "failed", "the rest is %q, status %q", f.Match, f.Status)
	got := FilterWord(&f, "tag")
	expect.True(t, got == nil, "again: %q", got)
}
