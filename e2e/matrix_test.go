package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// Sequences that terminals without a title, queries and modes of today know:
// those of a VT102, and a few more on the Linux console.
var (
	anySequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[\]P_^X]|[ -/]*[0-~])`)
	onVT102     = regexp.MustCompile(`^\x1b(\[[0-9;]*[ABCDHJKLMP@mr]|\[\?(25|7)[hl]|[78DEM])$`)
	onLinux     = regexp.MustCompile("^\x1b(\\[[0-9;]*[ABCDHJKLMP@mrGXd`]|\\[\\?(25|7)[hl]|[78DEM])$")
	manyColours = regexp.MustCompile(`\x1b\[([0-9]*;)*[34]8[;:][0-9;:]*m`)
)

// Any terminal at the other end of SSH gets what it can show: no sequence that
// it lacks, no colour that it has not or that was declined, ASCII unless it
// says UTF-8, lines where no cursor can be moved; in any size, and when that
// changes while the screen is drawn.
func TestAnyTerminalOverSSHGetsWhatItCanShow(t *testing.T) {
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	bob := d.client(1, "bob", "operator")
	u.ok("agent", "create", "looker", "--project", "demo", "--role", "reader", "--", "true")
	type place struct {
		term, noColor, lang string
		w, h                int
	}
	var places []place
	langs := []string{"C.UTF-8", "C", "en_US.UTF-8"}
	sizes := [][2]int{{80, 24}, {300, 100}, {20, 5}}
	terms := []string{"xterm-256color", "xterm", "screen", "tmux-256color", "linux", "vt100", "nonesuch", "dumb", "unknown"}
	for i, term := range terms { // each with each of the others somewhere
		places = append(places, place{term, "", "C.UTF-8", 80, 24}, place{term, "1", langs[1+i%2], sizes[i%2][0], sizes[i%2][1]})
		if i < len(sizes) {
			places = append(places, place{term, "", langs[i], 20, 5})
		}
	}
	if testing.Short() {
		places = places[:3]
	}
	for _, p := range places {
		t.Run(fmt.Sprintf("TERM=%s NO_COLOR=%s LANG=%s %dx%d", p.term, p.noColor, p.lang, p.w, p.h), func(t *testing.T) {
			t.Parallel()
			there := newUser(t).set("TERM="+p.term, "LANG="+p.lang)
			if p.noColor != "" {
				there.set("NO_COLOR=" + p.noColor)
			}
			s := there.sitAt(p.w, p.h, exec.Command("ssh", append([]string{"-tt", "-o", "SendEnv=LANG LC_ALL NO_COLOR"}, bob.args...)...))
			small := p.w < 60
			switch {
			case p.term == "dumb" || p.term == "unknown":
				s.until("the greeting", func() bool { return strings.Contains(s.output(), "in plain lines: TERM is "+p.term) })
				s.press("agent list\r")
				s.until("the agent", func() bool { return strings.Contains(s.output(), "looker ") })
				s.press("quit\r")
				if code := s.ends(); code != 0 || strings.ContainsRune(s.output(), 0x1b) {
					t.Errorf("exit %d: %q", code, s.output())
				}
				return
			case small:
				s.see(`60x15`)
			default:
				s.see(`looker`)
				s.press("2")
				s.see(`tasks 0`)
			}
			for n := range 12 { // sizes that come faster than frames
				s.resize(p.w+7*n, p.h+n)
				s.press("12"[n%2 : n%2+1])
			}
			s.resize(100, 30) // a key may come sooner on its way than a size
			s.until("the whole width", func() bool { return len([]rune(strings.Split(s.screen(), "\n")[1])) == 100 })
			s.press("2")
			s.see(`tasks 0`)
			expect.Is(t, s.leaves(), 0, "exit code")
			out := s.output()
			for name, known := range map[string]*regexp.Regexp{"vt100": onVT102, "linux": onLinux} {
				for _, seq := range anySequence.FindAllString(out, -1) {
					expect.Must(t, p.term != name || known.MatchString(seq), "%s does not know %q", name, seq)
				}
			}
			if p.term != "vt100" && p.term != "linux" {
				restored(t, s)
			}
			expect.Is(t, colourSGR.MatchString(out), p.noColor == "" && p.term != "vt100", "colours")
			expect.True(t, strings.Contains(p.term, "256") || !manyColours.MatchString(out), "more colours than it has")
			text := controls.ReplaceAllString(out, "")
			expect.Is(t, strings.IndexFunc(text, func(r rune) bool { return r > '~' }) < 0, p.lang == "C", "only ASCII")
		})
	}
}
