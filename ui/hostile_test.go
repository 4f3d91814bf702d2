package ui

import (
	"context"
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
	"swarmdeck/themes"
	"swarmdeck/ui/term"
)

// attacks is what agents, servers and files may send to take over a terminal
// or to deceive whoever reads it.
var attacks = []string{
	"\x1b[2J\x1b[H",                      // clears the screen
	"\x1b]0;owned\x07",                   // sets the title
	"\x1b]52;c;bWluZQ==\x07",             // writes the clipboard
	"\x1b]8;;http://evil.example\x1b\\x", // a link
	"\x1bP$q\x1b\\", "\x1b_G\x1b\\",      // DCS, APC
	"\x1b[200~rm -rf /\r\x1b[201~",        // pretends to paste
	"\x9b2J", "\u009b2J", "\u0090q\u009c", // C1, raw and encoded
	"\x1b", "\x1b[", "a\x1b", // cut in the middle
	"a\rb", "a\nb", "a\vb\fc", "\b\b\x7f\x00", // other controls
	"\u202etxt.exe\u202c", "\u2066a\u2069", "\u200f", // directions
	"a\u200bb\u200cc\u200dd\ufeff\u2060\u00ad",             // invisible
	"\U000e0041\U000e0042", "\ufe0f\u20e3", "\u115f\u3164", // tags, marks, fillers
	"\u2028\u2029\u0085",               // other line ends
	"\xff\xfe\xc0\xaf", "\xed\xa0\x80", // no UTF-8
	"👨\u200d👩\u200d👧", "🏳️\u200d🌈", "e" + strings.Repeat("\u0301", 500), "你好", // of doubtful width
	"%s%n%d", "${HOME}", "{id}", "$(id)", "';--", "<b>", "\t\t",
	strings.Repeat("x", 5000), strings.Repeat("\u202e", 5000),
}

// colours are the only sequences that the cockpit itself puts into a frame.
var colours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// harmless reports what in a text could steer a terminal or deceive a reader.
func harmless(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("no UTF-8: %q", s)
	}
	for i, r := range s {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == '\ufe0f' || r == '\u3164' || r == '\u115f') {
			return fmt.Errorf("%U in %q", r, s[max(0, i-20):min(len(s), i+20)])
		}
	}
	return nil
}

// poison puts a text into every string of a value that is no id and no word of
// the engine's own, and into its JSON.
func poison(v reflect.Value, text string, name string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			poison(v.Elem(), text, name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i), text, v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[core.Raw]() {
			if v.Len() > 0 && v.CanSet() {
				v.Set(reflect.ValueOf(core.MustEncode(map[string]string{"k" + strings.ToValidUTF8(text, "?"): strings.ToValidUTF8(text, "?")})))
			}
			return
		}
		for i := range v.Len() {
			poison(v.Index(i), text, name)
		}
	case reflect.String:
		if v.CanSet() && v.Type() == reflect.TypeFor[string]() && !strings.HasSuffix(name, "ID") && name != "Digest" {
			v.SetString(text)
		}
	}
}

// poisoned is a world in which everything that comes from outside is text.
func poisoned(rec recordings, text string) *fakeWorld {
	w := newModels()
	w.rec = recordings{liar{rec.DAG, text}, liar{text: text}, lyingJudge{rec.rulings, text}, rec.Comparer}
	if len(w.agents) > 0 {
		a := *w.agents[0]
		a.Stuck, a.Attention, a.Reason = &fleet.Stuck{Kind: fleet.Loop, Since: start}, "x", "x"
		a.Command, a.SessionID = []string{"x"}, id("se", 1)
		w.agents[0] = &a
	}
	act, _ := fakeFleet{w}.Activity(context.Background(), tenant, "scribe", start)
	poison(reflect.ValueOf(act), text, "")
	for i := range w.agents {
		poison(reflect.ValueOf(w.agents[i]), text, "")
		w.agents[i].Name = fmt.Sprint(i, text)
	}
	w.acts = map[string]fleet.Activity{}
	for _, a := range w.agents {
		w.acts[a.Name] = *act
	}
	for _, all := range []any{&w.sessions, &w.tasks, &w.answered, &w.decisions, &w.events, &w.approvals, &w.skills, &w.runs, &w.subagents, &w.messages, &w.readers, &w.boxes, &w.makers, &w.spaces, &w.flows} {
		poison(reflect.ValueOf(all), text, "")
	}
	for _, sk := range w.skills {
		sk.Dependencies = nil // which are names of skills that are there
	}
	for _, lines := range w.logs {
		poison(reflect.ValueOf(&lines), text, "")
	}
	w.poisonModels(text)
	for k, r := range w.results {
		poison(reflect.ValueOf(&r), text, "")
		w.results[k] = r
	}
	w.cluster = twoOfThree()
	poison(reflect.ValueOf(&w.cluster), text, "")
	w.estop.On, w.estop.By, w.estop.Reason, w.estop.Waiting = true, text, text, []string{text}
	return w
}

// tour visits every pane, opens what is in it, and looks at each frame.
var tour = strings.Fields("1 enter l h Z esc j enter esc + esc esc 2 enter esc 3 enter esc 4 enter esc 5 enter esc 6 enter esc 7 8 enter esc r esc esc x enter esc A enter esc 9 enter esc D enter esc L T ? esc T e enter esc esc : esc i i i i i i m y 0 esc C enter esc w enter j esc v tab s esc f enter j j esc x enter esc 1 H k enter ctrl+d v l v esc esc esc esc H g t j l ctrl+d h n F tab esc esc esc esc P enter c b ctrl+d esc 5 enter ctrl+d esc")

func checkScreens(t *testing.T, rec recordings, text string, w, h int) {
	t.Helper()
	theme := expect.Of(themes.Load(themes.Default))(t)
	r := rigOn(t, poisoned(rec, text), w, h, Options{Theme: theme, Notice: NoticeOSC777})
	r.runs = func([]string) (string, string, int) { return text + "\n", text, 1 }
	for _, key := range tour {
		r.wait(deadTime)
		r.press(key)
		v := r.m.View()
		expect.No(t, harmless(colours.ReplaceAllString(v.Content, "")), "after", key, "the screen has")
		for y, row := range r.m.Frame().Plain() {
			expect.Must(t, term.Width(row) <= w, "after %q row %d is wider than the screen: %q", key, y, row)
		}
		err := harmless(v.WindowTitle)
		expect.Must(t, err == nil && !strings.Contains(v.WindowTitle, "\n"), "after %q the title has %v", key, err)
	}
	r.send(tea.BlurMsg{})
	r.m.heed(nil)
	r.wait(alertGap)
	for _, n := range r.m.queue() {
		for _, notice := range []Notice{NoticeOSC9, NoticeOSC777} {
			body := strings.TrimSuffix(strings.TrimPrefix(notice.sequence(n.text), "\x1b]"), "\a")
			err := harmless(body)
			expect.Must(t, err == nil && !strings.Contains(body, "\n") && strings.Count(body, ";") <= 3, "%s has %v: %q", notice, err, body)
		}
	}
	expect.No(t, harmless(term.CleanLines(text)), "the pager is given")
}

func TestNothingHostileReachesTheTerminal(t *testing.T) {
	all, rec := strings.Join(attacks[:len(attacks)-2], " "), newRecord(t).rec
	for i, text := range append(attacks, all) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			checkScreens(t, rec, text, 80, 24)
			if text == all {
				checkScreens(t, rec, text, 170, 45)
			}
		})
	}
}

func FuzzNothingHostileReachesTheTerminal(f *testing.F) {
	seeds := attacks
	if flag.Lookup("test.fuzz").Value.String() == "" { // the test above tries them all
		seeds = attacks[:1]
	}
	for _, text := range seeds {
		f.Add(text)
	}
	rec := newRecord(f).rec
	f.Fuzz(func(t *testing.T, text string) { checkScreens(t, rec, text, 120, 40) })
}

// TestWhatIsSentIsSeen keeps the test above honest: the texts do get there.
func TestWhatIsSentIsSeen(t *testing.T) {
	r := rigOn(t, poisoned(newRecord(t).rec, "MARK\x1b[31m"), 170, 45, Options{})
	r.runs = func([]string) (string, string, int) { return "", "MARK\x1b[2J", 1 }
	seen := 0
	for _, key := range tour {
		r.wait(deadTime)
		r.press(key)
		if strings.Count(strings.Join(r.m.Frame().Plain(), "\n"), "MARK") > 3 {
			seen++
		}
	}
	expect.True(t, seen >= len(tour)*3/4, "%d of %d frames show it", seen, len(tour))
}
