package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// column is one column of a text table.
type column[T any] struct {
	title string
	wide  bool // only with -o wide
	right bool
	most  int // cells at most in text; 0 is no limit
	text  func(T) string
}

// list prints records: a table, or one JSON object per line with the page's
// place as a last line when --page was asked for.
func list[T any](c *call, page core.Page[T], cols []column[T]) error {
	var out bytes.Buffer
	if c.g.Output == "json" {
		for i := range page.Items {
			if err := putJSON(&out, &page.Items[i]); err != nil {
				return err
			}
		}
	} else {
		table(&out, page.Items, cols, c.g.Output == "wide")
	}
	return c.place(&out, page.Info)
}

// place ends a list with the page's place, where that is of interest.
func (c *call) place(out *bytes.Buffer, i core.PageInfo) error {
	switch asked := c.flags.Changed("page"); {
	case c.g.Output != "json" && (asked || i.Next):
		more := ""
		if i.AtLeast {
			more = " or more"
		}
		fmt.Fprintf(out, "page %d of %d%s, %d%s in all\n", i.Page, max(1, (i.Total+i.PageSize-1)/max(1, i.PageSize)), more, i.Total, more)
	case c.g.Output == "json" && asked:
		if err := putJSON(out, i); err != nil {
			return err
		}
	}
	return c.flush(out)
}

// record prints one record the way list would.
func record[T any](c *call, v T, cols []column[T]) error {
	return c.print(v, func(w io.Writer) error {
		table(w, []T{v}, cols, c.g.Output == "wide")
		return nil
	})
}

// show prints one record in full: JSON, or a line per field. Hidden
// characters are shown as text, so that what is read is what is there.
func (c *call) show(v any) error {
	return c.print(v, func(w io.Writer) error {
		data, err := core.Encode(v)
		if err != nil {
			return fmt.Errorf("encode %T: %w", v, err)
		}
		return details(w, data)
	})
}

// say prints one clean line, or v with -o json.
func (c *call) say(v any, format string, args ...any) error {
	return c.print(v, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, term.Clean(fmt.Sprintf(format, args...)))
		return err
	})
}

// verbatim prints a text as it is, or v with -o json.
func (c *call) verbatim(v any, text []byte) error {
	return c.print(v, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// print prints v as JSON with -o json, else what text writes.
func (c *call) print(v any, text func(io.Writer) error) error {
	var out bytes.Buffer
	write := text
	if c.g.Output == "json" {
		write = func(io.Writer) error { return putJSON(&out, v) }
	}
	if err := write(&out); err != nil {
		return err
	}
	return c.flush(&out)
}

// flush writes a command's output in one piece.
func (c *call) flush(out *bytes.Buffer) error {
	if _, err := c.env.Stdout.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func putJSON(w *bytes.Buffer, v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	w.Write(visible(data))
	w.WriteByte('\n')
	return nil
}

// visible escapes control and format characters (C1, bidi, zero width) in
// encoded JSON: the value stays the same, a terminal sees nothing of them.
func visible(data []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	if bytes.IndexFunc(data, hidden) < 0 {
		return data
	}
	var out bytes.Buffer
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case !hidden(r):
			out.Write(data[:n])
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		data = data[n:]
	}
	return out.Bytes()
}

func table[T any](w io.Writer, items []T, cols []column[T], wide bool) {
	t := textTable{lines: make([]strings.Builder, len(items)+1), wide: wide}
	for c := range cols {
		if col := &cols[c]; t.begin(col.title, col.wide, col.most) {
			for i := range items {
				t.add(col.text(items[i]))
			}
			t.end(col.right)
		}
	}
	t.print(w)
}

// textTable gathers a table column by column. It knows texts alone, so that there is
// one of it for all that is listed.
type textTable struct {
	lines []strings.Builder
	wide  bool
	// Of the column that is gathered:
	texts       []string
	width, most int
}

// begin says whether a column is shown.
func (t *textTable) begin(title string, wide bool, most int) bool {
	t.texts, t.width, t.most = []string{title}, term.Width(title), most
	return t.wide || !wide
}

func (t *textTable) add(text string) {
	text = term.Clean(text)
	if !t.wide && t.most > 0 {
		text = term.Cut(text, t.most)
	}
	text = cmp.Or(text, "-")
	t.texts, t.width = append(t.texts, text), max(t.width, term.Width(text))
}

func (t *textTable) end(right bool) {
	for i, text := range t.texts {
		line := &t.lines[i]
		if line.Len() > 0 {
			line.WriteString("  ")
		}
		gap := strings.Repeat(" ", t.width-term.Width(text))
		if right {
			line.WriteString(gap + text)
		} else {
			line.WriteString(text + gap)
		}
	}
}

func (t *textTable) print(w io.Writer) {
	for i := range t.lines {
		fmt.Fprintln(w, strings.TrimRight(t.lines[i].String(), " "))
	}
}

// details prints the members of a JSON object, one per line, in their order.
func details(w io.Writer, data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	type field struct{ name, value string }
	var fields []field
	width := 0
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		text := string(value)
		if value.Kind() == '"' {
			b, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return fmt.Errorf("read record: %w", err)
			}
			text = string(b)
		}
		fields = append(fields, field{term.Reveal(key), text})
		width = max(width, term.Width(term.Reveal(key)))
	}
	for _, f := range fields {
		pad := strings.Repeat(" ", width-term.Width(f.name)+2)
		for i, line := range strings.Split(strings.TrimRight(f.value, "\n"), "\n") {
			if i == 0 {
				fmt.Fprintf(w, "%s%s%s\n", f.name, pad, term.Reveal(line))
			} else {
				fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", width+2), term.Reveal(line))
			}
		}
	}
	return nil
}

// age is how long ago at was, "" for no time.
func (c *call) age(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return short(max(0, c.now().Sub(at)))
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
