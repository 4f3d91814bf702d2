package screen_test

import (
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

func TestALinkIsOpenedByItsCellsOnly(t *testing.T) {
	c := screen.New(12, 2)
	line := screen.Styled{Text: "see docs now", Spans: []screen.Span{{From: 4, To: 8, Role: screen.Text, Link: "https://x.example/a?b=1&c=2"}}}
	c.Styled(0, 0, &line)
	c.Styled(0, 1, &line)
	c.Text(4, 1, screen.Text, "do")
	out := c.Render(theme())
	want := "see \x1b]8;;https://x.example/a?b=1&c=2\x1b\\docs\x1b]8;;\x1b\\ now"
	expect.True(t, strings.Split(out, "\n")[0] == want, "got  %q\nwant %q", out, want)
	expect.True(t, c.LinkAt(5, 1) == "" && c.LinkAt(6, 1) == "https://x.example/a?b=1&c=2",
		"drawn over, the cells open %q and %q", c.LinkAt(5, 1), c.LinkAt(6, 1))
	buf := uv.NewScreenBuffer(12, 2)
	uv.NewStyledString(out).Draw(buf, buf.Bounds())
	for x := range 12 {
		expect.Is(t, buf.CellAt(x, 0).Link.URL, c.LinkAt(x, 0), "the toolkit opens", "at", x)
	}
	c.Clear()
	expect.True(t, !strings.Contains(c.Render(theme()), "\x1b]8"), "a cleared picture has a link")
}

func TestOnlyLinksOfTheWebInPrintableASCIIAreOpened(t *testing.T) {
	for link, want := range map[string]bool{
		"https://x.example": true, "http://x.example/%20": true, "file:///etc/passwd": false, "javascript:x": false, "https://x\x1b\\y": false, "https://x\x07y": false,
		"https://é.example": false, "https://a b": false, "": false, "https://a;b": false, "https://" + strings.Repeat("a", 3000): false,
	} {
		c := screen.New(2, 1)
		c.Link(c.Bounds(), link)
		got := c.LinkAt(0, 0) != ""
		expect.True(t, got == want && screen.Opens(link) == want, "%.40q is opened: %v", link, got)
	}
}
