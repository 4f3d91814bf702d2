package markdown

import (
	"cmp"
	"strings"

	"github.com/yuin/goldmark/ast"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/syntax"
	"swarmdeck/ui/term"
)

// maxCode bounds a line of code, in bytes, that is laid out at once.
const maxCode = 4 << 10

// code writes a block of code, in the colours of its language. Its lines are broken
// wherever they must, so that spaces stay.
func (w *writer) code(n ast.Node, language string) {
	of := syntax.Of(fileOf(language))
	var lexer syntax.Lexer
	lines := n.Lines()
	w.within(lead{first: "  ", rest: "  "}, func() {
		for i := 0; i < lines.Len() && !w.full(); i++ {
			at := lines.At(i)
			line := screen.Styled{Text: term.Clean(strings.TrimRight(string(at.Value(w.src)), "\r\n")), Role: w.o.Role}
			switch {
			case language == "diff" || language == "patch":
				line.Role = changed(line.Text, line.Role)
			case of != nil:
				line.Spans = lexer.Lex(of, line.Text)
			}
			w.codeLine(line)
		}
	})
}

func (w *writer) codeLine(line screen.Styled) {
	if len(line.Text) > maxCode { // it has no colours
		line.Spans = nil
	}
	for len(line.Text) > maxCode && !w.full() {
		head := screen.Styled{Text: cutAt(line.Text, maxCode), Role: line.Role}
		line.Text = line.Text[len(head.Text):]
		w.broken(head)
	}
	w.broken(line)
}

func (w *writer) broken(line screen.Styled) {
	for _, piece := range line.Break(w.width()) {
		w.row(piece)
	}
}

// cutAt is at most the first n bytes, which end between characters.
func cutAt(s string, n int) string {
	end := 0
	for end < n {
		_, rest := term.Next(s[end:])
		if next := len(s) - len(rest); next > n {
			break
		} else {
			end = next
		}
	}
	return s[:max(end, 1)]
}

// changed is the role of a line of a diff.
func changed(line string, role screen.Role) screen.Role {
	switch {
	case strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++"):
		return screen.Added
	case strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---"):
		return screen.Removed
	case strings.HasPrefix(line, "@@"):
		return screen.Dim
	}
	return role
}

// fileOf is a file name of a language as people name it behind a fence.
func fileOf(language string) string {
	switch language = strings.ToLower(language); language {
	case "":
		return ""
	case "make", "makefile":
		return "makefile"
	case "docker", "dockerfile":
		return "dockerfile"
	}
	return "x." + cmp.Or(endings[language], language)
}

// endings are those of files of languages that people call otherwise.
var endings = map[string]string{
	"python": "py", "python3": "py", "javascript": "js", "node": "js", "typescript": "ts", "golang": "go", "rust": "rs", "ruby": "rb",
	"shell": "sh", "console": "sh", "shell-session": "sh", "terminal": "sh", "c++": "cpp", "csharp": "cs", "c#": "cs", "kotlin": "kt",
	"haskell": "hs", "elixir": "ex", "jsonc": "json", "terraform": "tf",
}
