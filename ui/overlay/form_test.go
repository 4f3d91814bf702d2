package overlay_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
)

func raw(s string) core.Raw { return core.Raw(s) }

// detect is a form with a field of each type.
func detect() *overlay.Form {
	return overlay.NewForm("invoke detect@1.2.0", []overlay.Field{
		{Name: "image", Type: overlay.StringField, Required: true, Description: "Path of the picture to look at."},
		{Name: "confidence", Type: overlay.NumberField, Default: raw("0.5"), Description: "Least confidence of what is reported, from 0 to 1."},
		{Name: "limit", Type: overlay.IntegerField},
		{Name: "mode", Type: overlay.EnumField, Required: true, Enum: []core.Raw{raw(`"fast"`), raw(`"exact"`), raw(`3`)}, Default: raw(`"fast"`)},
		{Name: "dry_run", Type: overlay.BooleanField},
		{Name: "options", Type: overlay.JSONField, Default: raw(`{"depth":2}`), Description: "Handed on to the detector as it is."},
	})
}

func draw(o overlay.Overlay, w, h int, glyphs *screen.Glyphs) *screen.Canvas {
	c := screen.New(w, h)
	c.SetGlyphs(glyphs)
	o.Draw(c)
	return c
}

func TestAFormLooksRight(t *testing.T) {
	f := detect()
	screentest.Golden(t, draw(f, 80, 24, screen.Unicode()), "form-80x24")
	keys(f, "enter", "tab")
	f.Refuse(core.Errorf(core.InvalidInput, "limit: must be 100 or less").With("field", "limit"))
	screentest.Golden(t, draw(f, 80, 24, screen.Unicode()), "form-refused-80x24")
	keys(f, "tab", "tab", "tab")
	screentest.Golden(t, draw(f, 80, 24, screen.Unicode()), "form-json-80x24")
	keys(f, "up")
	c := draw(f, 80, 24, screen.ASCII())
	screentest.Golden(t, c, "form-ascii-80x24")
	screentest.ASCII(t, c)
}

func TestAFormMakesAnObject(t *testing.T) {
	tests := []struct {
		name string
		do   func(f *overlay.Form)
		want string
	}{
		{"defaults", func(*overlay.Form) {}, `{"image":"a.png","confidence":0.5,"mode":"fast","options":{"depth":2}}`},
		{"numbers", func(f *overlay.Form) {
			keys(f, "tab", "ctrl+u")
			typed(f, " 1e-3 ")
			keys(f, "down")
			typed(f, "-7")
		}, `{"image":"a.png","confidence":1e-3,"limit":-7,"mode":"fast","options":{"depth":2}}`},
		{"choices", func(f *overlay.Form) {
			keys(f, "tab", "tab", "tab", "3", "tab", "space", "right")
		}, `{"image":"a.png","confidence":0.5,"mode":3,"dry_run":false,"options":{"depth":2}}`},
		{"a choice taken back", func(f *overlay.Form) {
			keys(f, "tab", "tab", "tab", "tab", "t", "backspace")
		}, `{"image":"a.png","confidence":0.5,"mode":"fast","options":{"depth":2}}`},
		{"a required choice can't be taken back", func(f *overlay.Form) {
			keys(f, "tab", "tab", "tab", "right", "backspace")
		}, `{"image":"a.png","confidence":0.5,"mode":"exact","options":{"depth":2}}`},
		{"an emptied field is left out", func(f *overlay.Form) {
			keys(f, "tab", "ctrl+u")
		}, `{"image":"a.png","mode":"fast","options":{"depth":2}}`},
		{"JSON over lines", func(f *overlay.Form) {
			keys(f, "shift+tab", "ctrl+end", "backspace", "backspace", "backspace")
			typed(f, `2,`)
			keys(f, "alt+enter")
			typed(f, `"x":[]}`)
		}, `{"image":"a.png","confidence":0.5,"mode":"fast","options":{"depth":2,"x":[]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := detect()
			typed(f, "a.png")
			tt.do(f)
			a := keys(f, "enter")
			if a.Kind != overlay.Submit || a.Text != tt.want {
				t.Errorf("%v %s\nwant %s\n%s", a.Kind, a.Text, tt.want, shown(f, 80, 24))
			}
		})
	}
}

func TestAFormSaysWhatIsWrongAtEachField(t *testing.T) {
	f := detect()
	keys(f, "tab", "ctrl+u")
	typed(f, "0.5.1")
	keys(f, "tab")
	typed(f, "1.5")
	keys(f, "shift+tab", "shift+tab", "shift+tab")
	keys(f, "ctrl+end", "backspace")
	a := keys(f, "enter")
	expect.Must(t, a.Kind == overlay.None, "enter gives %v", a)
	out := shown(f, 80, 30)
	for _, want := range []string{"! is required", `! "0.5.1" is no number`, "! 1.5 is no whole number", "! not valid JSON"} {
		expect.Has(t, out, want)
	}
	typed(f, "b") // the first field with a problem has the keys
	out = shown(f, 80, 30)
	expect.True(t, !strings.Contains(out, "is required") && strings.Contains(out, "is no number"), "the screen is\n%s", out)
}

func TestNumbersThatLoseDigitsAreRefused(t *testing.T) {
	for _, n := range []string{"9007199254740993.0", "1e999"} {
		f := overlay.NewForm("x", []overlay.Field{{Name: "n", Type: overlay.NumberField}, {Name: "j", Type: overlay.JSONField}})
		typed(f, n)
		keys(f, "tab")
		typed(f, "["+n+"]")
		a, out := keys(f, "enter"), shown(f, 80, 24)
		for _, want := range []string{"  ! number " + n, "  ! 0: number " + n, "carry it as"} {
			expect.True(t, a.Kind == overlay.None && strings.Contains(out, want), "%s gives %v\n%s", n, a, out)
		}
	}
}

func TestTheRulesOfTheWholeAreShownWhereTheyBelong(t *testing.T) {
	f := detect()
	var got string
	f.Check = func(object core.Raw) error {
		got = string(object)
		return core.Errorf(core.InvalidInput, "many").With("field", "limit").With("problems", []map[string]string{
			{"field": "params.options.depth[0].x", "message": "must be 1"},
			{"field": "/limit", "message": "must be 9"},
			{"field": "limit", "message": "or less"},
			{"field": "", "message": "too much at once"},
			{"field": "nowhere", "message": "is unknown"},
		})
	}
	typed(f, "a")
	a := keys(f, "enter")
	expect.Must(t, a.Kind == overlay.None && strings.Contains(got, `"image":"a"`), "%v of %s", a, got)
	out := shown(f, 80, 24)
	for _, want := range []string{"! depth.0.x: must be 1", "! must be 9; or less", "too much at once; nowhere: is unknown"} {
		expect.Has(t, out, want)
	}
}

func TestALongProblemIsShownToItsEnd(t *testing.T) {
	f := overlay.NewForm("x", []overlay.Field{{Name: "s", Type: overlay.StringField}})
	f.Check = func(core.Raw) error {
		return core.Invalid("dir", "/home/ann/"+strings.Repeat("long/", 20), "a directory outside of its source")
	}
	keys(f, "enter")
	expect.Has(t, shown(f, 80, 24), "outside of its source", "the screen is")
}

func TestAPasteNeverSubmitsOrChooses(t *testing.T) {
	f := detect()
	if a := f.Update(tea.PasteMsg{Content: "one\ntwo\u202e\n"}); a.Kind != overlay.None {
		t.Fatalf("a paste gives %v", a)
	}
	keys(f, "tab", "tab", "tab")
	f.Update(tea.PasteMsg{Content: "exact"})
	a := keys(f, "enter")
	var got struct {
		Image string `json:"image"`
		Mode  string `json:"mode"`
	}
	err := core.DecodeStored([]byte(a.Text), &got)
	expect.True(t, err == nil && got.Image == "one\ntwo\u202e" && got.Mode == "fast", "%+v of %q: %v", got, a.Text, err)
}

func TestTextWithQuotesIsEnteredAsJSON(t *testing.T) {
	for in, want := range map[string]string{`""`: "", `"a\nb"`: "a\nb", `say "hi"`: `say "hi"`, `"\"q\""`: `"q"`, "a\ufffdb": "a\ufffdb"} {
		f := overlay.NewForm("x", []overlay.Field{{Name: "s", Type: overlay.StringField, Required: true}})
		typed(f, in)
		a := keys(f, "enter")
		expect.True(t, a.Text == `{"s":`+string(core.MustEncode(want))+`}`, "%s gives %v", in, a)
		// A default comes back as it was, whatever it holds.
		f = overlay.NewForm("x", []overlay.Field{{Name: "s", Type: overlay.StringField, Default: core.MustEncode(want)}})
		a = keys(f, "enter")
		expect.True(t, want == "" || a.Text == `{"s":`+string(core.MustEncode(want))+`}`, "default %q gives %v", want, a)
	}
	f := overlay.NewForm("x", []overlay.Field{{Name: "s", Type: overlay.StringField}})
	typed(f, `"a" or b`)
	a := keys(f, "enter")
	expect.True(t, a.Kind == overlay.None, "half a JSON string gives %v", a)
}

func TestADefaultThatDoesNotFitIsNamed(t *testing.T) {
	for typ, v := range map[overlay.FieldType]string{
		overlay.StringField: `5`, overlay.NumberField: `"5"`, overlay.IntegerField: `1.5`, overlay.BooleanField: `1`, overlay.EnumField: `"none"`, overlay.JSONField: `{`,
	} {
		f := overlay.NewForm("x", []overlay.Field{{Name: "f", Type: typ, Enum: []core.Raw{raw(`"a"`)}, Default: raw(v)}})
		expect.Has(t, shown(f, 80, 24), "! the default "+v+" is no "+string(typ), typ, v)
	}
}

func TestEscLeavesAFormAndAsksOnceWhenItWasFilledIn(t *testing.T) {
	f := detect()
	a := keys(f, "esc")
	expect.Must(t, a.Kind == overlay.Close, "esc gives %v", a)
	typed(f, "a")
	a = keys(f, "esc")
	expect.Must(t, a.Kind == overlay.None && strings.Contains(shown(f, 80, 24), "esc again drops"), "esc over text gives %v", a)
	a = keys(f, "tab", "esc", "esc")
	expect.Must(t, a.Kind == overlay.Close, "the second esc gives %v", a)
	held := press("enter")
	held.IsRepeat = true
	a = f.Update(held)
	expect.True(t, a.Kind == overlay.None, "a held enter gives %v", a)
}

func TestAFormWithoutFieldsMakesAnEmptyObject(t *testing.T) {
	f := overlay.NewForm("x", nil)
	keys(f, "tab", "shift+tab", "up", "down", "a")
	f.Update(tea.PasteMsg{Content: "x"})
	a := keys(f, "enter")
	expect.True(t, a.Kind == overlay.Submit && a.Text == "{}", "enter gives %v", a)
}

// Whatever keys and pastes come, in any size, a form holds.
func TestAFormWithHostileTextHolds(t *testing.T) {
	nasty := []string{"\x1b[31mred\x1b]52;c;AAAA\x07", "\u202edesrever", "世界", "👨‍👩‍👧", "e\u0301\u0302", "\xff", strings.Repeat("long ", 300), "a\nb\tc", "\"", "{", "\u0301"}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func() string { return nasty[rng.IntN(len(nasty))] }
	names := []string{"tab", "shift+tab", "up", "down", "left", "right", "enter", "home", "end", "backspace", "alt+enter", "space", "a", "ctrl+u", "pgdown", "esc"}
	types := []overlay.FieldType{overlay.StringField, overlay.NumberField, overlay.IntegerField, overlay.BooleanField, overlay.EnumField, overlay.JSONField, "unheard of"}
	for range 60 {
		var fields []overlay.Field
		for range rng.IntN(12) {
			fields = append(fields, overlay.Field{
				Name: pick(), Type: types[rng.IntN(len(types))], Required: rng.IntN(2) == 0, Description: pick(),
				Default: raw(pick()), Enum: []core.Raw{raw(pick()), core.MustEncode("é\u202e")},
			})
		}
		f := overlay.NewForm(pick(), fields)
		for range 60 {
			switch rng.IntN(4) {
			case 0:
				f.Update(tea.PasteMsg{Content: pick()})
			case 1:
				f.Refuse(core.Errorf(core.InvalidInput, "%s", pick()).With("field", pick()))
			default:
				a := keys(f, names[rng.IntN(len(names))])
				expect.Must(t, a.Kind != overlay.Submit || raw(a.Text).IsValid(), "it made %q", a.Text)
			}
			c := draw(f, rng.IntN(100), rng.IntN(30), screen.Unicode())
			for _, row := range c.Plain() {
				expect.Must(t, !strings.ContainsAny(row, "\x1b\x07\u202e\u200d"), "the screen holds %q", row)
			}
		}
	}
}
