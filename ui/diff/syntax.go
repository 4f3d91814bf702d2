package diff

import (
	"swarmdeck/ui/screen"
	"swarmdeck/ui/syntax"
)

// paint gives the lines of a file the colours of its language. A line that is changed
// keeps the colour of its change, but where all lines of the file are new, or gone.
func paint(lines []Line, name string, whole bool) {
	of := syntax.Of(name)
	if of == nil {
		return
	}
	var old, now syntax.Lexer
	for i := range lines {
		l := &lines[i]
		var spans []screen.Span
		switch l.Kind {
		case Removed:
			spans = old.Lex(of, l.Text)
		case Added:
			spans = now.Lex(of, l.Text)
		default:
			old.Lex(of, l.Text)
			spans = now.Lex(of, l.Text)
		}
		if whole || l.Kind == Context {
			l.role(spans)
		}
	}
}
