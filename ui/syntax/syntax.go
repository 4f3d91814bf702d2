// Package syntax tells comments, texts, numbers and keywords of programming languages
// apart, well enough for colours. It reads each byte once, whatever a line holds, and
// needs no table before the first line is shown.
package syntax

import (
	"path"
	"strings"

	"swarmdeck/ui/screen"
)

// Language is what is known of the words of a language.
type Language struct {
	line     []string // what begins a comment that ends with the line
	open     string   // what begins and ends one that goes on
	shut     string
	quotes   string   // of texts that end with the line
	long     []string // of texts that go on
	keywords string
	nocase   bool
	words    map[string]bool // the keywords
}

const (
	cWords    = "auto break case char const continue default do double else enum extern float for goto if inline int long register return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false NULL"
	cppWords  = cWords + " class namespace template typename public private protected virtual override final new delete this try catch throw using operator friend nullptr constexpr auto noexcept explicit mutable"
	jsWords   = "async await break case catch class const continue debugger default delete do else export extends false finally for from function if import in instanceof let new null of return static super switch this throw true try typeof undefined var void while with yield"
	tsWords   = jsWords + " abstract any as boolean declare enum implements interface keyof namespace never number private protected public readonly string type unknown"
	javaWords = "abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float for if implements import instanceof int interface long native new null package private protected public record return short static super switch synchronized this throw throws transient true false try var void volatile while"
	shWords   = "if then else elif fi for in do done while until case esac function return local export readonly declare set unset shift exit break continue trap source eval exec"
)

// Of finds a file's language by its name; nil where it is none that is known.
func Of(name string) *Language {
	l := find(name)
	if l == nil {
		return nil
	}
	l.words = map[string]bool{}
	for w := range strings.FieldsSeq(l.keywords) {
		l.words[w] = true
	}
	return l
}

func find(name string) *Language {
	base := strings.ToLower(path.Base(name))
	switch base {
	case "makefile", "gnumakefile", "dockerfile", "containerfile", "justfile":
		return &Language{line: []string{"#"}, quotes: `"'`, keywords: shWords + " FROM RUN COPY ADD ENV ARG CMD ENTRYPOINT WORKDIR EXPOSE USER LABEL VOLUME AS include ifeq ifneq ifdef ifndef endif"}
	case "go.mod", "go.work":
		return &Language{line: []string{"//"}, keywords: "module go require replace exclude retract toolchain use"}
	}
	slashes := func(words, quotes string, long ...string) *Language {
		return &Language{line: []string{"//"}, open: "/*", shut: "*/", quotes: quotes, long: long, keywords: words}
	}
	switch strings.TrimPrefix(path.Ext(base), ".") {
	case "go":
		return slashes("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr", `"'`, "`")
	case "c", "h":
		return slashes(cWords, `"'`)
	case "cc", "cpp", "cxx", "hpp", "hh", "hxx", "ino":
		return slashes(cppWords, `"'`)
	case "js", "mjs", "cjs", "jsx":
		return slashes(jsWords, `"'`, "`")
	case "ts", "mts", "cts", "tsx":
		return slashes(tsWords, `"'`, "`")
	case "java":
		return slashes(javaWords, `"'`, `"""`)
	case "kt", "kts", "scala", "groovy", "gradle":
		return slashes(javaWords+" val fun object when is in out override data sealed companion def trait lazy match with", `"'`, `"""`)
	case "cs":
		return slashes(javaWords+" namespace using string object out ref params async await get set internal readonly sealed virtual override partial where yield", `"'`)
	case "swift":
		return slashes("as break case catch class continue default defer do else enum extension false for func guard if import in init inout is let nil override private protocol public return self static struct super switch throw throws true try var where while async await", `"`, `"""`)
	case "rs":
		return slashes("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char str String u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64", `"`)
	case "zig", "dart", "php", "proto", "cue", "thrift", "hcl", "tf", "scss", "less", "css":
		return slashes(jsWords+" fn pub const message service rpc returns repeated optional required oneof enum syntax package reserved resource variable module output provider locals echo foreach namespace", `"'`)
	case "py", "pyi", "bzl", "star":
		return &Language{line: []string{"#"}, quotes: `"'`, long: []string{`"""`, "'''"}, keywords: "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield case"}
	case "rb":
		return &Language{line: []string{"#"}, quotes: `"'`, keywords: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require"}
	case "sh", "bash", "zsh", "ksh", "fish":
		return &Language{line: []string{"#"}, quotes: `"'`, keywords: shWords}
	case "yaml", "yml", "toml", "ini", "cfg", "conf", "properties", "env", "editorconfig":
		return &Language{line: []string{"#"}, quotes: `"'`, keywords: "true false null yes no on off"}
	case "json", "jsonl", "json5", "webmanifest":
		return &Language{line: []string{"//"}, quotes: `"`, keywords: "true false null"}
	case "sql":
		return &Language{line: []string{"--"}, open: "/*", shut: "*/", quotes: `'"`, nocase: true, keywords: "add all alter and as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists foreign from full grant group having if in index inner insert into is join key left like limit not null on or order outer primary references returning right rollback select set table then union unique update using values view when where with"}
	case "lua":
		return &Language{line: []string{"--"}, quotes: `"'`, keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while"}
	case "hs", "elm":
		return &Language{line: []string{"--"}, open: "{-", shut: "-}", quotes: `"`, keywords: "case class data deriving do else if import in infix instance let module newtype of then type where"}
	case "ex", "exs":
		return &Language{line: []string{"#"}, quotes: `"'`, long: []string{`"""`}, keywords: "after alias and case catch cond def defmodule defp defstruct do else end false fn for if import in nil not or quote raise receive rescue true try unless use when with"}
	case "html", "xml", "svg", "xhtml", "vue":
		return &Language{open: "<!--", shut: "-->", quotes: `"`}
	}
	return nil
}

// Lexer reads a text line by line. The zero value is at its beginning.
type Lexer struct {
	until string // a comment or a text that goes on ends with it
	role  screen.Role
}

// Lex finds the parts of the next line that have a colour.
func (x *Lexer) Lex(of *Language, s string) (out []screen.Span) {
	put := func(from, to int, role screen.Role) {
		if to > from {
			out = append(out, screen.Span{From: from, To: to, Role: role})
		}
	}
	i := 0
	for i < len(s) {
		if x.until != "" {
			end := strings.Index(s[i:], x.until)
			if end < 0 {
				put(i, len(s), x.role)
				return out
			}
			end += i + len(x.until)
			put(i, end, x.role)
			i, x.until = end, ""
			continue
		}
		rest := s[i:]
		if n := of.comment(s, i); n > 0 {
			put(i, len(s), screen.Comment)
			return out
		}
		if of.open != "" && strings.HasPrefix(rest, of.open) {
			x.until, x.role = of.shut, screen.Comment
			put(i, i+len(of.open), x.role)
			i += len(of.open)
			continue
		}
		if q := of.begins(rest); q != "" {
			x.until, x.role = q, screen.Literal
			put(i, i+len(q), x.role)
			i += len(q)
			continue
		}
		c := s[i]
		from := i
		switch {
		case strings.IndexByte(of.quotes, c) >= 0:
			i = quoted(s, i)
			put(from, i, screen.Literal)
		case c >= '0' && c <= '9':
			for i < len(s) && (wordByte(s[i]) || s[i] == '.') {
				i++
			}
			put(from, i, screen.Literal)
		case wordByte(c):
			for i < len(s) && wordByte(s[i]) {
				i++
			}
			word := s[from:i]
			if of.nocase {
				word = strings.ToLower(word)
			}
			if of.words[word] {
				put(from, i, screen.Keyword)
			}
		default:
			i++
		}
	}
	return out
}

// comment is how long the sign at i is that begins a comment to the line's end. One of
// signs that words may hold stands at a word's beginning.
func (of *Language) comment(s string, i int) int {
	for _, sign := range of.line {
		if strings.HasPrefix(s[i:], sign) && (sign != "#" || i == 0 || s[i-1] == ' ') {
			return len(sign)
		}
	}
	return 0
}

// begins is the sign that a text which goes on begins with.
func (of *Language) begins(s string) string {
	for _, q := range of.long {
		if strings.HasPrefix(s, q) {
			return q
		}
	}
	return ""
}

// quoted is where a text ends that begins at i; at the line's end if nothing ends it.
func quoted(s string, i int) int {
	q := s[i]
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case q:
			return i + 1
		}
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
