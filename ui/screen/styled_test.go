package screen_test

import (
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

func TestALineIsBrokenWithItsRoles(t *testing.T) {
	for _, text := range []string{"", "abc", "a b  c", "世界世界", "    indented ⟨U+202E⟩"} {
		for w := 1; w < 9; w++ {
			s := screen.Styled{Text: text, Role: screen.Added}
			if len(text) > 2 {
				s.Spans = []screen.Span{{From: 0, To: 1, Role: screen.Keyword}}
				if text[0] >= 0x80 {
					s.Spans[0].To = 3
				}
			}
			joined, roles := "", 0
			for _, piece := range s.Break(w) {
				joined += piece.Text
				width := term.Width(piece.Text)
				expect.True(t, width <= max(w, 2), "%q in %d cells: %q takes %d", text, w, piece.Text, width)
				for _, p := range piece.Spans {
					roles += p.To - p.From
				}
			}
			want := len(s.Spans)
			expect.True(t, joined == text && (want <= 0 || roles == s.Spans[0].To), "%q in %d cells became %q with %d bytes of a role", text, w, joined, roles)
		}
	}
}
