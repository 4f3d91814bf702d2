package overlay_test

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

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

func TestALongTextIsFoldedAndSentWhole(t *testing.T) {
	p, long := overlay.NewCompose("Say"), strings.Repeat("\tline [text 1: 300 lines] \ufffd\n", 299)+"end"
	keys(p, "a", "space")
	p.Update(tea.PasteMsg{Content: long})
	keys(p, "space", "b")
	expect.Has(t, shown(p, 80, 24), "a [text 1: 300 lines] b")
	expect.Is(t, p.Value(), "a "+long+" b")
	p.SetValue(long)
	expect.Is(t, p.Value(), long)
	for range 205 {
		keys(p, "ctrl+j")
	}
	p.Update(tea.PasteMsg{Content: "c"})
	expect.Is(t, p.Value(), long+strings.Repeat("\n", 205)+"c")
}

func TestALongLineIsWrapped(t *testing.T) {
	p := overlay.NewCompose("Say")
	p.Update(tea.PasteMsg{Content: strings.Repeat("many words ", 30) + "end"})
	expect.Has(t, shown(p, 80, 24), "end")
	keys(p, "ctrl+home", "ctrl+k")
	for _, key := range []string{"a", "space", "b", "c", "ctrl+w", "d", "shift+left", "e"} {
		p.Update(press(key))
	}
	expect.Is(t, p.Value(), "a e")
}
