package e2e

import (
	"flag"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hinshun/vt10x"

	"swarmdeck/expect"
)

var record = flag.Bool("record", false, "write the recording at the head of the README anew")

const recording = "docs/demo.svg"

// A cell of the recording, in pixels, and how long a picture of it stays.
const (
	cellWide, cellHigh = 8.4, 17
	seconds            = 4
)

// tape is what was on a screen, in turn, each with a line that says what is seen.
type tape struct {
	said  []string
	shots []string
}

// shot takes what is on the screen now.
func (r *tape) shot(s *seat, said string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.said, r.shots = append(r.said, said), append(r.shots, picture(s.vt))
}

// ends writes the recording, or sees that the one of the README shows the same.
func (r *tape) ends(t *testing.T, cols, rows int) {
	t.Helper()
	high := float64(rows+2) * cellHigh
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="-8 -4 %.0f %.0f" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">
<style>
.f{animation:f %ds steps(1) infinite;opacity:0}
@keyframes f{0%%{opacity:1}%.3f%%,100%%{opacity:0}}
.b{font-weight:bold}
</style>
<rect x="-8" y="-4" width="100%%" height="100%%" rx="6" fill="#16181d"/>
`, float64(cols)*cellWide+16, high+8, seconds*len(r.shots), 100/float64(len(r.shots)))
	for i, shot := range r.shots {
		fmt.Fprintf(&b, "<g class=\"f\" style=\"animation-delay:%ds\">\n%s<text x=\"0\" y=\"%.0f\" fill=\"#e5c07b\">%s</text>\n</g>\n",
			seconds*i, shot, high-5, html.EscapeString(r.said[i]))
	}
	b.WriteString("</svg>\n")
	if *record {
		expect.No(t, os.WriteFile(recording, []byte(b.String()), 0o600))
	}
	made := string(expect.Of(os.ReadFile(recording))(t))
	for _, said := range r.said {
		expect.Has(t, made, ">"+html.EscapeString(said)+"<", "what the recording says; go test ./e2e -run TheFirstVisit -record makes it anew")
	}
}

// homely is the directory of a test, which is nobody's.
var homely = regexp.MustCompile(`/tmp/Test[\w/]*("?)`)

func elsewhere(path string) string {
	return fmt.Sprintf("%-*s", len(path), homely.ReplaceAllString(path, "~/project$1"))
}

// picture draws a screen: backgrounds, then runs of one style.
func picture(vt vt10x.Terminal) string {
	var b strings.Builder
	cols, rows := vt.Size()
	for y := range rows {
		for x := 0; x < cols; {
			first := vt.Cell(x, y)
			var text strings.Builder
			n := 0
			for ; x+n < cols; n++ {
				cell := vt.Cell(x+n, y)
				if cell.FG != first.FG || cell.BG != first.BG || cell.Mode != first.Mode {
					break
				}
				text.WriteRune(max(cell.Char, ' '))
			}
			left, wide := float64(x)*cellWide, float64(n)*cellWide
			if first.BG != vt10x.DefaultBG {
				fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", left, y*cellHigh, wide, cellHigh, colour(first.BG))
			}
			if s := homely.ReplaceAllStringFunc(text.String(), elsewhere); strings.TrimSpace(s) != "" {
				weight := ""
				if first.Mode&4 != 0 {
					weight = ` class="b"`
				}
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" fill=\"%s\"%s>%s</text>\n",
					left, y*cellHigh+13, wide, colour(first.FG), weight, html.EscapeString(s))
			}
			x += n
		}
	}
	return b.String()
}

// colour is one of a terminal's, in the web's words.
func colour(c vt10x.Color) string {
	named := strings.Fields("#16181d #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #c8ccd4 #5c6370 #ff7b86 #b5e890 #ffd580 #82c4ff #e39cf7 #7fdbe6 #ffffff")
	switch {
	case c == vt10x.DefaultFG:
		return named[7]
	case c == vt10x.DefaultBG:
		return named[0]
	case c < 16:
		return named[c]
	case c < 232:
		level := func(n vt10x.Color) vt10x.Color { return min(n, 1)*55 + n*40 }
		return fmt.Sprintf("#%02x%02x%02x", level((c-16)/36), level((c-16)/6%6), level((c-16)%6))
	case c < 256:
		return fmt.Sprintf("#%02x%02x%02x", 8+10*(c-232), 8+10*(c-232), 8+10*(c-232))
	}
	return fmt.Sprintf("#%06x", uint32(c))
}
