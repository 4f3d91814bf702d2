package command

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// maxArg bounds what a command reads from stdin or a file for one argument.
const maxArg = core.MaxInput

// document reads a JSON argument: a literal, @file, or - for stdin. It must
// be one JSON object.
func (c *call) document(field, arg string) (core.Raw, error) {
	data, err := c.text(field, arg)
	if err != nil {
		return nil, err
	}
	if err := core.CheckObject(field, data, maxArg); err != nil {
		return nil, err
	}
	return core.Raw(data), nil
}

// text reads an argument that may be @file or -.
func (c *call) text(field, arg string) ([]byte, error) {
	switch {
	case arg == "-":
		if c.env.Stdin == nil {
			return nil, usage(field, "%s: there is no stdin here", field)
		}
		return readBounded(field, "stdin", c.env.Stdin)
	case strings.HasPrefix(arg, "@"):
		return c.file(field, arg[1:])
	}
	return []byte(arg), nil
}

// file reads a file given on the command line; - is stdin.
func (c *call) file(field, path string) ([]byte, error) {
	if path == "-" {
		return c.text(field, path)
	}
	if data, ok := c.env.Files[path]; ok {
		return readBounded(field, path, bytes.NewReader(data))
	}
	if c.env.Remote {
		return nil, onlyThere("@"+path, field)
	}
	f, err := c.openFile(path)
	if err != nil {
		return nil, fileError(field, path, err)
	}
	defer f.Close()
	return readBounded(field, path, f)
}

func fileError(field, path string, err error) error { return op.FileFault("read", field, path, err) }

func readBounded(field, name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxArg+1))
	if err != nil {
		return nil, fileError(field, name, err)
	}
	if len(data) > maxArg {
		return nil, usage(field, "%s: %s is larger than %d bytes", field, core.Clip(name), maxArg)
	}
	return data, nil
}

// traceparent is the W3C trace context that the command's caller is in, from
// its environment; "" for none.
func (c *call) traceparent() string {
	parent := c.env.getenv("TRACEPARENT")
	if _, _, ok := core.ParseTraceparent(parent); !ok {
		return ""
	}
	return parent
}

// span is a duration flag like 15m, which also takes days (30d).
type span struct{ d *time.Duration }

func spanVar(f *pflag.FlagSet, p *time.Duration, name, usage string) {
	f.Var(span{p}, name, usage)
}

func (s span) String() string {
	if s.d == nil || *s.d == 0 {
		return ""
	}
	return s.d.String()
}
func (s span) Type() string { return "DURATION" }
func (s span) Set(text string) (err error) {
	*s.d, err = core.ParseSpan(text)
	return err
}

// instant is a point in time: RFC 3339, or a duration before now.
func (c *call) instant(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := core.ParsePast(c.now(), text)
	if err != nil {
		return at, usage(field, "--%s: %q is not allowed; %v", field, core.Clip(text), err)
	}
	return at, nil
}

// Split cuts a line into words as a POSIX shell does for plain words: blanks
// separate, '…' is literal, "…" is literal but for \" and \\, and a backslash
// outside quotes takes the next character as it is. Nothing is expanded.
func Split(line string) ([]string, error) {
	words, _, err := scan(line)
	return words, err
}

// scan splits a line; open reports whether the last word was still being
// typed when the line ended (no blank after it).
func scan(line string) (words []string, open bool, err error) {
	var word strings.Builder
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		ch := line[i]
		switch {
		case quote == '\'' && ch != '\'':
			word.WriteByte(ch)
		case quote == '"' && ch == '\\' && i+1 < len(line) && (line[i+1] == '"' || line[i+1] == '\\'):
			i++
			word.WriteByte(line[i])
		case quote != 0 && ch == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(ch)
		case ch == '\'' || ch == '"':
			quote, open = ch, true
		case ch == '\\':
			if i+1 == len(line) {
				err = core.Errorf(core.InvalidInput, "line ends in a backslash").With("field", "line")
				break
			}
			i++
			word.WriteByte(line[i])
			open = true
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteByte(ch)
			open = true
		}
	}
	if quote != 0 {
		err = core.Errorf(core.InvalidInput, "line ends inside %c quotes", quote).With("field", "line")
	}
	if open {
		words = append(words, word.String())
	}
	return words, open, err
}
