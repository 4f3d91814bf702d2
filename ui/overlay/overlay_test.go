package overlay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/screen"
)

// press makes a key as the toolkit would.
func press(name string) tea.KeyPressMsg {
	k := tea.Key{}
	for {
		if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
			k.Mod, name = k.Mod|tea.ModCtrl, rest
		} else if rest, ok := strings.CutPrefix(name, "alt+"); ok {
			k.Mod, name = k.Mod|tea.ModAlt, rest
		} else if rest, ok := strings.CutPrefix(name, "shift+"); ok {
			k.Mod, name = k.Mod|tea.ModShift, rest
		} else {
			break
		}
	}
	named := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "space": tea.KeySpace, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	if code, ok := named[name]; ok {
		k.Code = code
		if name == "space" {
			k.Text = " "
		}
		return tea.KeyPressMsg(k)
	}
	k.Code = []rune(name)[0]
	if k.Mod == 0 {
		k.Text = name
	}
	return tea.KeyPressMsg(k)
}

// keys presses keys one after another and gives back the last action.
func keys(o overlay.Overlay, names ...string) overlay.Action {
	var a overlay.Action
	for _, n := range names {
		a = o.Update(press(n))
	}
	return a
}

func typed(o overlay.Overlay, text string) (a overlay.Action) {
	for _, r := range text {
		if r == ' ' {
			a = keys(o, "space")
		} else {
			a = keys(o, string(r))
		}
	}
	return a
}

func shown(o overlay.Overlay, w, h int) string {
	c := screen.New(w, h)
	o.Draw(c)
	return strings.Join(c.Plain(), "\n")
}

func TestEnterNeverConfirms(t *testing.T) {
	for key, want := range map[string]overlay.Kind{
		"enter": overlay.Close, "esc": overlay.Close, "n": overlay.Close, "q": overlay.Close, "y": overlay.Yes, "x": overlay.None, "space": overlay.None, "Y": overlay.None,
	} {
		got := keys(&overlay.Confirm{Verb: "stop"}, key)
		expect.True(t, got.Kind == want, "%s gives %v", key, got)
	}
	q := &overlay.Confirm{Verb: "stop"}
	held := press("y")
	held.IsRepeat = true
	got := q.Update(held)
	expect.True(t, got.Kind == overlay.None, "a key that repeats gives %v", got)
	got = q.Update(tea.PasteMsg{Content: "y"})
	expect.True(t, got.Kind == overlay.None, "a paste gives %v", got)
	got = keys(&overlay.Confirm{Trigger: "y"}, "y")
	expect.True(t, got.Kind == overlay.None, "the trigger gives %v", got)
	got = keys(&overlay.Confirm{Trigger: "y"}, "o")
	expect.True(t, got.Kind == overlay.Yes, "o gives %v", got)
}

func TestIrreversibleWantsTheNameTyped(t *testing.T) {
	q := &overlay.Confirm{Title: "Delete", Verb: "delete the agent", Lines: []string{"agent scout, revision 7"}, Type: "scout"}
	got := keys(q, "y", "enter")
	expect.Must(t, got.Kind == overlay.None, "y gives %v", got)
	expect.Has(t, shown(q, 60, 12), "that is not scout", "the screen is")
	q.Update(tea.PasteMsg{Content: "scout"})
	keys(q, "ctrl+u")
	typed(q, "scout")
	got = keys(q, "enter")
	expect.True(t, got.Kind == overlay.Yes, "the name gives %v", got)
	out := shown(q, 60, 12)
	for _, want := range []string{"agent scout, revision 7", "delete the agent", "Delete"} {
		expect.Has(t, out, want)
	}
}

func TestConfirmCountsWhatDoesNotFit(t *testing.T) {
	q := &overlay.Confirm{Verb: "cancel 40 tasks"}
	for i := range 40 {
		q.Lines = append(q.Lines, fmt.Sprintf("task %d", i))
	}
	out := shown(q, 60, 20)
	expect.True(t, strings.Contains(out, "and 26 more lines") && strings.Contains(out, "cancel 40 tasks"), "the screen is\n%s", out)
}

func TestKeysAreDeadAfterAnUnaskedOverlay(t *testing.T) {
	var got []overlay.Kind
	now := time.Unix(1000, 0)
	var s overlay.Stack
	s.PushUnasked(&overlay.Confirm{}, func(a overlay.Action) tea.Cmd { got = append(got, a.Kind); return nil }, now)
	_, taken := s.Update(press("y"), now.Add(299*time.Millisecond))
	expect.Must(t, taken && len(got) == 0 && s.Open(), "a key in the dead time did %v", got)
	s.Update(press("y"), now.Add(overlay.DeadTime))
	expect.Must(t, len(got) == 1 && got[0] == overlay.Yes && !s.Open(), "got %v, or it is still open", got)
	_, taken = s.Update(press("y"), now)
	expect.Must(t, !taken, "an empty stack took a key")
}

func TestOnlyTheTopOverlayGetsKeys(t *testing.T) {
	var s overlay.Stack
	p := &overlay.Prompt{Title: "Reason"}
	s.Push(p, nil)
	s.Push(&overlay.Menu{Items: []overlay.Item{{ID: "a"}}}, nil)
	s.Update(press("k"), time.Time{})
	s.Update(tea.PasteMsg{Content: "pasted"}, time.Time{})
	expect.Is(t, p.Input.Value(), "", "the lower one got")
	s.Update(press("esc"), time.Time{})
	s.Update(press("k"), time.Time{})
	expect.True(t, s.Open() && p.Input.Value() == "k", "it is open: %t, value %q", s.Open(), p.Input.Value())
	_, taken := s.Update(tea.WindowSizeMsg{}, time.Time{})
	expect.True(t, !taken, "a message that is no key was taken")
}

func TestAPromptTakesNoEmptyLine(t *testing.T) {
	p := &overlay.Prompt{Title: "Deny"}
	a := keys(p, "enter")
	expect.True(t, a.Kind == overlay.None && strings.Contains(shown(p, 40, 8), "can't be empty"), "an empty line gives %v", a)
	typed(p, "no")
	p.Update(tea.PasteMsg{Content: "\x1b[31m way\n\u202e"})
	a = keys(p, "enter")
	expect.True(t, a.Kind == overlay.Submit && a.Text == "no way ", "got %+v", a)
}

func TestInputEdits(t *testing.T) {
	tests := []struct{ keys, want string }{
		{"a b c left backspace", "ac"},
		{"a b c home delete", "bc"},
		{"a b space c d ctrl+w", "ab "},
		{"a b c ctrl+u x", "x"},
		{"a b left ctrl+k", "a"},
		{"a b space c alt+b alt+b x", "xab c"},
		{"é 世 left left end !", "é世!"},
		{"a left alt+d", "a"},
		{"a \u0301 left backspace", ""},
	}
	for _, tt := range tests {
		var in overlay.Input
		for _, k := range strings.Fields(tt.keys) {
			in.Update(press(k))
		}
		expect.Is(t, in.Value(), tt.want, tt.keys, "gives")
	}
}

func TestEditorShowsHiddenCharactersAsEscapes(t *testing.T) {
	e := overlay.NewEditor("Arguments", "{\n\t\"a\": \"x\u202ey\U000E0041\u200b\"\n}", nil)
	want := "{\n  \"a\": \"x\\u202ey\\udb40\\udc41\\u200b\"\n}"
	a := keys(e, "ctrl+x")
	expect.Must(t, a.Kind == overlay.Submit && a.Text == want, "got %+v", a)
}

func TestEditorEdits(t *testing.T) {
	e := overlay.NewEditor("Arguments", "{}", func(s string) error {
		if !strings.HasSuffix(s, "}") {
			return errors.New("line 1: not an object")
		}
		return nil
	})
	keys(e, "right", "enter", "space", "space")
	e.Update(tea.PasteMsg{Content: "\"a\": 1,\n\"b\": 2"})
	keys(e, "enter", "backspace")
	want := "{\n  \"a\": 1,\n\"b\": 2}"
	a := keys(e, "ctrl+x")
	expect.Must(t, a.Kind == overlay.Submit && a.Text == want, "got %+v, want %q", a, want)
	a = keys(e, "esc")
	expect.Must(t, a.Kind == overlay.None && strings.Contains(shown(e, 60, 14), "drops the changes"), "esc over changes gives %v", a)
	keys(e, "end", "x")
	a = keys(e, "ctrl+x")
	expect.Must(t, a.Kind == overlay.None && strings.Contains(shown(e, 60, 14), "line 1: not an object"), "a wrong document gives %v", a)
	keys(e, "backspace")
	a = keys(e, "ctrl+x")
	expect.Must(t, a.Kind == overlay.Submit, "got %+v", a)
	a = keys(overlay.NewEditor("", "x", nil), "esc")
	expect.Must(t, a.Kind == overlay.Close, "esc over no changes gives %v", a)
}

func TestTheEditorScrollsOnlyTheCursorsLineSideways(t *testing.T) {
	long := "  \"body\": \"" + strings.Repeat("0123456789", 20) + "end\""
	e := overlay.NewEditor("Arguments", "{\n"+long+"\n}", nil)
	first := shown(e, 60, 14)
	expect.Must(t, strings.Contains(first, `"body": "0123`) && strings.Contains(first, "…"),
		"a long line starts at its beginning and says that it goes on:\n%s", first)
	keys(e, "down", "end")
	if got := shown(e, 60, 14); !strings.Contains(got, "{ ") || !strings.Contains(got, `end"`) || !strings.Contains(got, "}") {
		t.Fatalf("the lines around it stand still:\n%s", got)
	}
	keys(e, "down")
	got := shown(e, 60, 14)
	expect.Must(t, got == first, "back at its beginning:\n%s", got)
}

func TestHelpIsSearchedByKeyAndByName(t *testing.T) {
	m := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	why := func(b keymap.Binding) string {
		if b.Action == "approve" {
			return "read-only"
		}
		return ""
	}
	h := &overlay.Help{Entries: overlay.Entries(m.Bindings([]string{"approvals", "list", "global"}), why)}
	typed(h, "z")
	expect.Has(t, shown(h, 80, 24), "Put it off", "z shows")
	keys(h, "esc")
	typed(h, "approve what")
	out := shown(h, 80, 24)
	expect.True(t, strings.Contains(out, "not now: read-only") && !strings.Contains(out, "Put it off"), "approve shows\n%s", out)
	expect.Is(t, keys(h, "esc").Kind, overlay.None, "esc over a search closes")
	expect.Is(t, keys(h, "?").Kind, overlay.Close, "? doesn't close")
}

func TestMenuPicks(t *testing.T) {
	m := &overlay.Menu{Title: "Tenant", Items: []overlay.Item{{ID: "a", Text: "A"}, {ID: "b", Text: "B", Why: "no role there"}, {ID: "c", Text: "C"}}}
	a := keys(m, "j", "enter")
	expect.True(t, a.Kind == overlay.None, "a disabled item gives %v", a)
	expect.Has(t, shown(m, 60, 10), "no role there", "the reason isn't shown")
	a = keys(m, "j", "enter")
	expect.True(t, a.Kind == overlay.Pick && a.ID == "c", "got %+v", a)
	a = keys(m, "1")
	expect.True(t, a.ID == "a", "got %+v", a)
	a = keys(m, "9")
	expect.True(t, a.Kind == overlay.None, "got %+v", a)
}

func TestPaletteCompletesTheLastWord(t *testing.T) {
	p := overlay.NewPalette("", nil)
	a := typed(p, "task d")
	expect.Must(t, a.Kind == overlay.Complete && a.Text == "task d", "got %+v", a)
	p.SetCandidates("task x", []overlay.Candidate{{Text: "stale"}})
	p.SetCandidates("task d", []overlay.Candidate{{Text: "dispatch", Help: "give work", Key: "d"}, {Text: "delete"}})
	out := shown(p, 60, 10)
	expect.Must(t, strings.Contains(out, "give work") && !strings.Contains(out, "stale"), "the screen is\n%s", out)
	keys(p, "tab", "tab")
	expect.Must(t, p.Input.Value() == "task delete", "two tabs give %q", p.Input.Value())
	a = keys(p, "esc")
	expect.Must(t, a.Kind == overlay.Complete && p.Input.Value() == "task d", "esc gives %+v and %q", a, p.Input.Value())
	p.SetCandidates("task d", []overlay.Candidate{{Text: "dispatch"}})
	a = keys(p, "tab")
	expect.Must(t, a.Kind == overlay.Complete && p.Input.Value() == "task dispatch ", "one candidate gives %+v and %q", a, p.Input.Value())
	a = keys(p, "enter")
	expect.Must(t, a.Kind == overlay.Submit && a.Text == "task dispatch", "got %+v", a)
}

func TestATabBeforeTheCandidatesCountsWhenTheyCome(t *testing.T) {
	p := overlay.NewPalette("task d", nil)
	a := keys(p, "tab")
	expect.True(t, a.Kind == overlay.Complete, "a tab without candidates gives %v", a)
	two := []overlay.Candidate{{Text: "dispatch"}, {Text: "delete"}}
	a = p.SetCandidates("task d", two)
	expect.True(t, a.Kind == overlay.None && p.Input.Value() == "task dispatch", "then the line is %q, %v", p.Input.Value(), a)
	p = overlay.NewPalette("task d", nil)
	keys(p, "shift+tab")
	p.SetCandidates("task d", two)
	expect.True(t, p.Input.Value() == "task delete", "backwards the line is %q", p.Input.Value())
	p = overlay.NewPalette("task d", nil)
	keys(p, "tab")
	a = p.SetCandidates("task d", two[:1])
	expect.True(t, a.Kind == overlay.Complete && p.Input.Value() == "task dispatch ", "the only one gives %q, %v", p.Input.Value(), a)
	for name, k := range map[string]string{"typing": "e", "going back": "backspace"} {
		p = overlay.NewPalette("task d", nil)
		keys(p, "tab", k)
		line := p.Input.Value()
		p.SetCandidates(line, two)
		expect.True(t, p.Input.Value() == line, "after %s the tab still counts: %q", name, p.Input.Value())
	}
	p = overlay.NewPalette("task d", nil)
	keys(p, "tab")
	p.SetCandidates("task d", nil)
	p.SetCandidates("task d", two)
	expect.True(t, p.Input.Value() == "task d", "a tab that found nothing still counts: %q", p.Input.Value())
}

func TestPaletteRecallsLinesThatBeginAlike(t *testing.T) {
	p := overlay.NewPalette("", []string{"task list", "agent list", "task why t_1"})
	typed(p, "task")
	keys(p, "up", "up")
	expect.Must(t, p.Input.Value() == "task list", "got %q", p.Input.Value())
	keys(p, "up", "down")
	expect.Must(t, p.Input.Value() == "task why t_1", "got %q", p.Input.Value())
	keys(p, "down")
	expect.Must(t, p.Input.Value() == "task", "got %q", p.Input.Value())
}

func TestToasts(t *testing.T) {
	now := time.Unix(1000, 0)
	var ts overlay.Toasts
	ts.Add(now, overlay.Error, "disk is full")
	ts.Add(now, overlay.Info, "one")
	ts.Add(now.Add(time.Second), overlay.Done, "two\x1b[31m")
	ts.Add(now.Add(2*time.Second), overlay.Info, "three")
	texts := func() (out []string) {
		for _, v := range ts.Visible() {
			out = append(out, v.Text)
		}
		return out
	}
	got := fmt.Sprint(texts())
	expect.Must(t, got == "[disk is full two three]", "in sight: %s", got)
	c := screen.New(40, 6)
	ts.Draw(c, c.Bounds())
	rows := c.Plain()
	if !strings.HasSuffix(rows[0], "error: disk is full") || !strings.HasSuffix(rows[1], "two") ||
		strings.Join(rows[2:5], "") != "" || !strings.HasSuffix(rows[5], "three") {
		t.Fatalf("the screen is\n%s", strings.Join(rows, "\n"))
	}
	ts.Add(now.Add(2*time.Second), overlay.Info, "what does not fit into the frame goes on in the line below it, and is cut only where that ends too")
	ts.Draw(c, screen.Rect{W: 40, H: 5})
	rows = c.Plain()
	expect.Is(t, strings.Join(rows[4:], "\n"), "  what does not fit into the frame goes\n on in the line below it, and is cut on…")
	ts.Expire(now.Add(time.Minute))
	if fmt.Sprint(texts()) != "[disk is full]" {
		t.Fatalf("after a minute: %s", texts())
	}
	ts.Add(now, overlay.Done, "disk is full")
	ts.Add(now, overlay.Error, "disk is full") // again, as the key was pressed again
	if got := ts.Visible(); len(got) != 2 || got[0].Level != overlay.Done || got[1].Level != overlay.Error {
		t.Fatalf("said again: %v", got)
	}
	ts.Expire(now.Add(time.Minute))
	expect.Must(t, ts.Dismiss() && !ts.Dismiss(), "dismiss")
}

// Random keys, pastes and sizes: no panic, no row that is too wide, the cursor
// on the canvas.
func TestAnyKeyAtAnySize(t *testing.T) {
	names := strings.Fields("enter esc tab shift+tab space backspace delete up down left right home end pgup pgdown ctrl+a ctrl+e ctrl+w ctrl+u ctrl+k ctrl+d ctrl+x ctrl+n ctrl+p ctrl+f ctrl+b ctrl+j alt+f alt+b alt+d alt+u ctrl+t ctrl+v ctrl+shift+c shift+up shift+right a @ y q 世 é { \" ? 3")
	pastes := []string{"\x1b]52;c;AA\x07", "a\nb\r\nc", "\u202e\u200b\ufeff", "世界👨‍👩‍👧", "\xff\xfe", strings.Repeat("x", 5000), strings.Repeat("a b\n", 40), "e\u0301\u0302\u0303\u0304"}
	make := []func() overlay.Overlay{
		func() overlay.Overlay {
			return &overlay.Confirm{Title: "T\x1b[m", Verb: "v", Lines: []string{"世界", strings.Repeat("l ", 200)}}
		},
		func() overlay.Overlay { return &overlay.Confirm{Type: "世界", Verb: "v"} },
		func() overlay.Overlay { return &overlay.Prompt{Title: "T"} },
		func() overlay.Overlay { return overlay.NewEditor("E", "{\"a\":\n 1}", nil) },
		func() overlay.Overlay {
			p := overlay.NewCompose("C")
			p.Offers = []overlay.Offer{{Word: "@a世"}, {Word: "@ab", Text: "@\"a b\""}}
			return p
		},
		func() overlay.Overlay {
			return &overlay.Help{Entries: []overlay.Entry{{Section: "s", Keys: "j", Text: "t", What: "a b"}}, Notes: []string{"n"}}
		},
		func() overlay.Overlay { return &overlay.Menu{Items: []overlay.Item{{ID: "a", Text: "A", Help: "h"}}} },
		func() overlay.Overlay { return &overlay.Menu{} },
		func() overlay.Overlay {
			p := overlay.NewPalette("x", []string{"xa", "xb"})
			p.SetCandidates("x", []overlay.Candidate{{Text: "one"}, {Text: "世", Help: "h", Key: "k"}})
			return p
		},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	theme := screen.NewTheme("", nil)
	for round := range 1200 {
		o := make[round%len(make)]()
		for range rng.IntN(30) {
			if rng.IntN(6) == 0 {
				o.Update(tea.PasteMsg{Content: pastes[rng.IntN(len(pastes))]})
			} else {
				o.Update(press(names[rng.IntN(len(names))]))
			}
			if rng.IntN(4) > 0 {
				continue
			}
			w, h := rng.IntN(90), rng.IntN(30)
			c := screen.New(w, h)
			o.Draw(c)
			if x, y, ok := c.Cursor(); ok && (x < 0 || x >= w || y < 0 || y >= h) {
				t.Fatalf("cursor at %d,%d of %dx%d", x, y, w, h)
			}
			for _, row := range strings.Split(c.Render(theme), "\n") {
				got := ansi.StringWidth(row)
				expect.Must(t, h <= 0 || got == w, "a row of %d cells on %d: %q", got, w, row)
			}
		}
	}
}
