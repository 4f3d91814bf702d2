package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// list prints records: a table, or one JSON object per line with the page's
// place as a last line when --page was asked for.
func (c *call) list(all any) error { return c.listBy(nil, all) }

// listBy is list with a face of its own.
func (c *call) listBy(f *face.Face, all any) error {
	var out bytes.Buffer
	if c.g.Output == "json" {
		rows, _ := face.Rows(all)
		for i := range rows.Len() {
			if err := putJSON(&out, face.Row(rows, i)); err != nil {
				return err
			}
		}
	} else {
		c.table(&out, f, all)
	}
	var info core.PageInfo
	if page, is := all.(interface{ Rows() (any, core.PageInfo) }); is {
		_, info = page.Rows()
	}
	return c.place(&out, info)
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

// show prints one record in full: JSON, or a line per field. Hidden
// characters are shown as text, so that what is read is what is there.
func (c *call) show(v any) error {
	return c.print(v, func(w io.Writer) error { return details(w, v) })
}

// say prints one clean line, or v with -o json.
func (c *call) say(v any, format string, args ...any) error {
	return c.verbatim(v, []byte(term.Clean(fmt.Sprintf(format, args...))+"\n"))
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

// table writes records, one or many, as a table with the columns of a face; of the one
// that is declared for them where f is nil.
func (c *call) table(w io.Writer, f *face.Face, all any) {
	rows, of := face.Rows(all)
	if f == nil {
		f = op.FaceOf(of)
	}
	at := c.at()
	t := textTable{lines: make([]strings.Builder, rows.Len()+1), wide: c.g.Output == "wide"}
	for _, col := range f.Columns(t.wide) {
		t.texts, t.width, t.most, t.exact = []string{col.Title}, term.Width(col.Title), col.Most, col.Exact
		for i := range rows.Len() {
			t.add(col.Text(face.Row(rows, i), at))
		}
		t.end(col.Right)
	}
	for i := range t.lines {
		fmt.Fprintln(w, strings.TrimRight(t.lines[i].String(), " "))
	}
}

// at is where and when the caller is shown records.
func (c *call) at() face.At {
	at := face.At{Now: c.now(), Dir: c.env.Dir}
	if c.eng != nil {
		at.Newest = c.eng.Skills.Newest
		at.Degraded = func(tenant string) bool { return len(c.eng.Health.Of(tenant)) > 0 }
	}
	return at
}

// textTable gathers a table column by column. It knows texts alone, so that there is
// one of it for all that is listed.
type textTable struct {
	lines []strings.Builder
	wide  bool
	// Of the column that is gathered:
	texts       []string
	width, most int
	exact       bool
}

func (t *textTable) add(text string) {
	if t.exact {
		text = term.Reveal(text)
	}
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

// details prints the members of what is a JSON object, one per line, in their order.
func details(w io.Writer, v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
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
