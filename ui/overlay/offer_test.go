package overlay_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/screen"
)

func TestTabCompletesCommandsAndFiles(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"the only one", "/ p l tab", "/plan "},
		{"what all begin with, then one after the other", "/ r tab", "/re"},
		{"the first", "/ r tab tab", "/review"},
		{"the next", "/ r tab tab tab", "/reset"},
		{"round", "/ r tab tab tab tab", "/review"},
		{"another key ends it", "/ r tab tab x tab", "/reviewx"},
		{"a command is at the beginning only", "a space / p tab", "a /p\t"},
		{"nor on a later line", "a ctrl+j / p tab", "a\n/p\t"},
		{"a file anywhere", "a space @ m tab", "a @main.go "},
		{"a path with spaces", "@ b space tab", "@b \t"},
		{"quoted", "@ b tab", "@\"b c.txt\" "},
		{"none", "@ z tab", "@z"},
		{"a tab", "x tab", "x\t"},
	} {
		p := overlay.NewCompose("Say")
		p.Offers = []overlay.Offer{
			{Word: "/plan", About: "Make a plan"}, {Word: "/review"}, {Word: "/reset"}, {Word: "@main.go"}, {Word: "@b c.txt", Text: `@"b c.txt"`},
		}
		for key := range strings.FieldsSeq(c.keys) {
			p.Update(press(key))
		}
		expect.Is(t, p.Value(), c.want, c.name)
		canvas := screen.New(60, 12)
		p.Draw(canvas)
	}
}

func TestWithoutOffersTabIsATab(t *testing.T) {
	p := overlay.NewCompose("Say")
	for _, key := range []string{"/", "x", "tab"} {
		p.Update(press(key))
	}
	expect.Is(t, p.Value(), "/x\t")
}
