package markdown_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"swarmdeck/expect"
	"swarmdeck/ui/markdown"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

func render(s string, width int, links bool) []screen.Styled {
	return markdown.Render(s, markdown.Options{Width: width, Glyphs: screen.Unicode(), Links: links})
}

// shown is the text of a layout, a line a row.
func shown(s string, width int) string {
	var b strings.Builder
	for _, r := range render(s, width, false) {
		b.WriteString(strings.TrimRight(r.Text, " ") + "\n")
	}
	return b.String()
}

func TestMarkdownIsLaidOutInRows(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"line breaks stay", "one\ntwo\n\nthree", "one\ntwo\n\nthree\n"},
		{"no blank line is made up", "# Head\ntext\n- a\n- b\ntext", "Head\ntext\n· a\n· b\n  text\n"},
		{"words are kept whole", "a rather long line of words", "a rather long line\nof words\n"},
		{"stress", "some *weak* and **strong** `code`", "some weak and strong\ncode\n"},
		{"numbers", "3. c\n4. d\n   - e", "3. c\n4. d\n   · e\n"},
		{"a list's lines", "- one two three four five\n\n- b", "· one two three four\n  five\n\n· b\n"},
		{"quote", "> said\n> again\n>> deeper", "│ said\n│ again\n│ │ deeper\n"},
		{"code", "```go\nfunc f() {\n\treturn\n}\n```\nend", "  func f() {\n      return\n  }\nend\n"},
		{"code keeps its spaces", "```\na  b   c  d    e   f  g\n```", "  a  b   c  d    e\n   f  g\n"},
		{"code, then a gap", "```\na\n```\n\nend", "  a\n\nend\n"},
		{"code without an end", "```\nx := 1", "  x := 1\n"},
		{"table", "|a|bb|\n|-|-|\n|1|two|", "a │ bb\n───────\n1 │ two\n"},
		{"broad table", "|a|b|\n|-|-|\n|one two three|four five six|", "a │ b\none two three │ four\nfive six\n"},
		{"link", "see [docs](https://x.example/a)", "see docs\n(https://x.example/a\n)\n"},
		{"bare link", "at https://x.example", "at https://x.example\n"},
		{"a link's definition", "[a]\n\n[a]: https://x.example", "a\n(https://x.example)\n\n[a]:\nhttps://x.example\n"},
		{"picture", "![alt](a.png)", "alt (a.png)\n"},
		{"HTML is text", "<b>x</b>\n\n<!-- hidden -->", "<b>x</b>\n\n<!-- hidden -->\n"},
		{"references", "&lt;a&gt; &#65;", "<a> A\n"},
		{"sequences", "a\x1b[31m*b*\x1b[0m\x1b]8;;http://x\x1b\\c\r\nd", "abc\nd\n"},
		{"nothing", "", "\n"},
	} {
		got := shown(c.in, 20)
		expect.True(t, got == c.want, "%s:\n%s\nwant\n%s", c.name, got, c.want)
	}
}

func TestPartsHaveRoles(t *testing.T) {
	var got []string
	for _, r := range render("# T\n**b** *i* `c` [l](https://x.example)\n```go\nif x // y\n```\n```diff\n+new\n```", 80, true) {
		r.Parts(func(text string, role screen.Role, _ string) { got = append(got, text+"="+role.String()) })
	}
	want := "T=title|b=strong| =text|i=emphasis| =text|c=literal| =text|l=accent|  =text|if=keyword| x =text|// y=comment|  =text|+new=added"
	expect.Is(t, strings.Join(got, "|"), want)
}

func TestALinkOpensOnlyWhatIsOfTheWebAndShowsWhereItLeads(t *testing.T) {
	for _, c := range []struct{ in, text, link string }{
		{"[docs](https://x.example/a)", "docs", "https://x.example/a"},
		{"[www.bank.example](https://evil.example)", "www.bank.example (https://evil.example)", "https://evil.example"},
		{"[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)", "https://evil.example"},
		{"https://x.example", "https://x.example", "https://x.example"},
		{"[f](file:///etc/passwd)", "f (file:///etc/passwd)", ""},
		{"[j](javascript:alert)", "j (javascript:alert)", ""},
		{"[e](<https://x.example/&#27;]8;;>)", "e (https://x.example/8;;)", ""},
	} {
		r := render(c.in, 80, true)[0]
		link := ""
		for _, p := range r.Spans {
			if p.Link != "" {
				link = p.Link
			}
		}
		expect.True(t, r.Text == c.text && link == c.link, "%s: %q opens %q, want %q, %q", c.in, r.Text, link, c.text, c.link)
	}
}

// hostile are texts of a log line's most, made to cost.
func hostile() map[string]string {
	out := map[string]string{}
	for _, piece := range []string{
		"[", "](", "![", "*a **b ", "*", "_a", "`", "` `` ", "> ", ">", "- ", "-\n", "1. ", "1) a\n", "<", "<a ", "<!--", "&", "&#27;", "|a", "|a|b|\n|-|-|\n", "||\n",
		"\t", " ", "\n", "# ", "```\n", "~~~\n> ", "http://a ", "http://", "www.", "a@b.c ", "\\", "[a]: b\n", "[a](<b ", "\u202e", "\x1b[31m", "\x1b]8;;http://x\x1b\\", "世", "e\u0301\u0302\u0303\u0304", "a",
		"   > - 1. ", "- a\n  - b\n    - c\n", "[a][a] ", "*[*]", "{", "$", "(", "[]()", "**x** ", "`x` ", "[x](y) ", "http://x.y/(", "&amp",
	} {
		out[piece] = strings.Repeat(piece, (64<<10)/len(piece))
	}
	var deep strings.Builder
	for i := range 300 {
		deep.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	out["deep"] = deep.String()
	return out
}

func TestNoTextIsLaidOutForLong(t *testing.T) {
	for name, s := range hostile() {
		for _, width := range []int{1, 80} {
			began := time.Now()
			rows := render(s, width, true)
			took := time.Since(began)
			t.Logf("%q at %d: %d rows, %v", name, width, len(rows), took)
			expect.True(t, took <= 3*time.Second, "%q at %d took %v", name, width, took)
		}
	}
}

// harmless fails when a row may not reach a terminal as it is.
func harmless(t *testing.T, rows []screen.Styled, width int) {
	t.Helper()
	expect.Must(t, len(rows) != 0 && len(rows) <= markdown.MaxRows, "%d rows", len(rows))
	for _, r := range rows {
		expect.Must(t, utf8.ValidString(r.Text), "invalid UTF-8: %q", r.Text)
		for _, c := range r.Text {
			expect.Must(t, !unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control), "%U in %q", c, r.Text)
		}
		n := term.Width(r.Text)
		expect.Must(t, n <= max(width, 8), "a row of %d cells on %d: %q", n, width, r.Text)
		at := 0
		for _, p := range r.Spans {
			expect.Must(t, p.From >= at && p.To >= p.From && p.To <= len(r.Text) && utf8.ValidString(r.Text[p.From:p.To]),
				"a part %d-%d after %d of %q", p.From, p.To, at, r.Text)
			at = p.To
			expect.Must(t, p.Link == "" || screen.Opens(p.Link), "opens %q", p.Link)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for piece, s := range hostile() {
		f.Add(s[:min(len(s), 400)], 20)
		f.Add(piece+"x\n"+piece, 3)
	}
	f.Add("# A\n\n> - **b** [c](https://d.example)\n>   ```go\n>   x\n>   ```\n\n|a|b|\n|-|-|\n|`c`|d|", 40)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = min(max(width, -1), 300)
		harmless(t, render(s, width, true), width)
		harmless(t, render(s, width, false), width)
	})
}
