package pane

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
	"swarmdeck/ui/term"
)

func docPage(w, h int, raw string) *Page {
	p := &Page{}
	p.Resize(w, h)
	var paras Paras
	paras.JSON("", core.Raw(raw))
	p.Set(paras)
	return p
}

func drawn(p *Page) string {
	c := screen.New(p.w, p.h)
	p.Draw(c, true)
	return strings.Join(c.Plain(), "\n")
}

func do(t *testing.T, p *Page, actions ...string) {
	t.Helper()
	for _, a := range actions {
		expect.Must(t, p.Do(a), "%s does nothing:\n%s", a, drawn(p))
	}
}

// nothingSeen turns the direction of text and holds what has no width.
const nothingSeen = "x\u202ey\u200b"

const message = `{"topic":"navigation.complete","priority":5,"payload":{"pose":[1.5,2,-3e2],"frame":"map","ok":true,"note":null,"empty":{},"none":[]},
 "hidden":"a\u202eb\u0007","raw":"` + nothingSeen + `"}`

func TestADocumentLooksRight(t *testing.T) {
	p := &Page{}
	p.Resize(80, 24)
	var paras Paras
	paras.Add("from", "scout", screen.Accent)
	paras.Head("payload")
	paras.JSON("", core.Raw(message))
	paras.JSON("labelled", core.Raw(`{"long":"`+strings.Repeat("word ", 30)+`","b":[1]}`))
	p.Set(paras)
	c := screen.New(80, 24)
	p.Draw(c, true)
	screentest.Golden(t, c, "json-80x24")

	do(t, p, "down", "down", "down", "down", "down", "fold")
	c.Clear()
	p.Draw(c, false)
	screentest.Golden(t, c, "json-folded-80x24")

	c = screen.New(80, 24)
	c.SetGlyphs(screen.ASCII())
	p = docPage(80, 24, strings.ReplaceAll(message, nothingSeen, "xy"))
	do(t, p, "down", "down", "down", "fold")
	p.Draw(c, true)
	screentest.Golden(t, c, "json-ascii-80x24")
	screentest.ASCII(t, c)
}

func TestFoldingKeepsThePlace(t *testing.T) {
	p := docPage(60, 20, `{"a":1,"b":{"c":[1,2,3],"d":4},"e":5}`)
	expect.Must(t, p.Lines() == 12, "%d lines:\n%s", p.Lines(), drawn(p))
	do(t, p, "down", "down", "down", "down", "down") // 2 within c
	do(t, p, "fold")                                 // folds c
	expect.Must(t, p.Lines() == 8 && p.Row() == "[1,2,3]" && strings.Contains(drawn(p), `▸ "c": [1,2,3] 3 members`), "on %s:\n%s", p.Row(), drawn(p))
	do(t, p, "open")
	expect.Must(t, p.Lines() == 12 && p.Row() == "[1,2,3]", "on %s:\n%s", p.Row(), drawn(p))
	do(t, p, "down", "fold-all")
	expect.Must(t, p.Lines() == 5 && strings.HasPrefix(p.Row(), `{"c":`), "on %s:\n%s", p.Row(), drawn(p))
	do(t, p, "down", "fold-all")
	expect.Must(t, p.Lines() == 12 && p.Row() == "5", "on %s:\n%s", p.Row(), drawn(p))
	expect.True(t, !p.Do("open"), "enter on a plain value does something")
	do(t, p, "top", "fold")
	expect.Must(t, p.Lines() == 1 && strings.Contains(drawn(p), "3 members"), "the whole:\n%s", drawn(p))
	p.Set(p.paras)
	expect.Is(t, p.Lines(), 1, "the same document forgets what was folded")
	do(t, p, "fold-all")
	expect.True(t, p.Lines() == 12, "opened again:\n%s", drawn(p))
}

func TestASearchOpensWhatItFinds(t *testing.T) {
	p := docPage(60, 20, `{"a":{"b":{"needle":1}},"c":{"d":{"other":2}},"z":"needle"}`)
	do(t, p, "fold-all")
	p.Find("needle")
	expect.Must(t, p.Row() == "1" && !strings.Contains(drawn(p), `"other": 2,`), "on %s:\n%s", p.Row(), drawn(p))
	do(t, p, "next-match")
	expect.Must(t, p.Row() == `"needle"`, "on %s:\n%s", p.Row(), drawn(p))
	do(t, p, "top", "fold-all", "bottom")
	p.Find("other")
	do(t, p, "prev-match")
	expect.Must(t, p.Row() == "2", "backwards on %s:\n%s", p.Row(), drawn(p))
}

func TestALargeDocumentStartsFolded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"rows":[`)
	for i := range 30_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"n":%d}`, i)
	}
	b.WriteString(`],"text":"` + strings.Repeat("long ", 100_000) + `"}`)
	p := docPage(80, 24, b.String())
	expect.Must(t, p.Lines() == 4 && strings.Contains(drawn(p), "30000 members") && strings.Contains(drawn(p), "500002 bytes"),
		"%d lines:\n%s", p.Lines(), drawn(p))
	do(t, p, "down", "fold")
	expect.Must(t, p.Lines() == 4+foldMembers+2, "%d lines", p.Lines())
	do(t, p, "bottom", "up", "up", "up", "fold") // the line that says how many more
	expect.Must(t, p.Lines() == 4+2*foldMembers+2, "%d lines:\n%s", p.Lines(), drawn(p))
	do(t, p, "top", "fold-all", "fold-all")
	expect.Must(t, p.Lines() <= foldMost+foldMembers, "%d lines are open", p.Lines())
}

func TestWhatIsNoJSONIsShownAsText(t *testing.T) {
	for _, raw := range []string{`{`, `{"a":1}x`, "", "\x1b[31m", "[1,]", strings.Repeat("[", 20_000)} {
		p := docPage(60, 10, raw)
		expect.True(t, !p.Do("fold") && !p.Do("open") && !strings.Contains(drawn(p), "\x1b"), "%.20q:\n%s", raw, drawn(p))
	}
}

func TestDeepNestingStaysReadable(t *testing.T) {
	p := docPage(40, 10, strings.Repeat(`{"k":[`, 60)+`"end"`+strings.Repeat(`]}`, 60))
	do(t, p, "fold-all")
	p.Find("end")
	expect.True(t, p.Row() == `"end"` && strings.Contains(drawn(p), `"end"`), "on %s:\n%s", p.Row(), drawn(p))
}

// The lines of a document that is wholly open are the document.
func FuzzFolds(f *testing.F) {
	for _, seed := range []string{message, `[]`, `{}`, `"a\"b"`, `[[],{},[{"a":[1]}],"]",",",":"]`, `{"a\"":"{","b":[true,false,null,-0.1e+5]}`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, ok := newFolds(core.Raw(data))
		if !ok || len(data) > 2000 {
			return
		}
		doc.unfold(foldMost)
		var b strings.Builder
		for _, l := range doc.root.lines(nil) {
			if l.part == foldHead && l.of.key != "" {
				b.WriteString(l.of.key + ":")
			}
			text, _ := l.text()
			b.WriteString(text)
		}
		want := core.Raw(data).Clone()
		expect.No(t, want.Compact())
		expect.Must(t, len(want) >= foldPreview || b.String() == string(want), "lines %q of %q", b.String(), want)
		p := docPage(30, 8, string(data))
		for _, a := range []string{"down", "fold", "down", "fold-all", "bottom", "fold", "next-match", "up", "open"} {
			p.Do(a)
			if out := drawn(p); out != term.Clean(strings.ReplaceAll(out, "\n", "|")) && strings.ContainsAny(out, "\x1b\u202e") {
				t.Fatalf("%q", out)
			}
		}
	})
}
