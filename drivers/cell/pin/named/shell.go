package named

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell adds what the commands of shell text name.
func (f *finder) shell(text string, depth int) {
	if depth > maxDepth || strings.TrimSpace(text) == "" {
		return
	}
	if len(text) > maxText {
		f.unbound("a shell line", "too long to be read")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil { // a shell runs what comes before the mistake
		f.unbound("a shell line", "not understood")
		for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>'\"`=", r) }) {
			f.look(w, true)
		}
	}
	if file == nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			f.call(n, depth)
		case *syntax.Redirect:
			if (n.Op == syntax.RdrIn || n.Op == syntax.RdrInOut) && n.Word != nil {
				for _, w := range f.expand(n.Word) {
					f.runs(w)
				}
			}
		}
		return true
	})
}

// call adds what one command of shell text names.
func (f *finder) call(n *syntax.CallExpr, depth int) {
	for _, a := range n.Assigns {
		if a.Name == nil || a.Value == nil {
			continue
		}
		if w := f.value(a.Value); w.known && !a.Append {
			f.vars[a.Name.Value] = w.text
		} else {
			f.vars[a.Name.Value] = w.guess
		}
	}
	var words []word
	for _, a := range n.Args {
		words = append(words, f.expand(a)...)
	}
	if len(words) == 0 {
		return
	}
	switch words[0].text {
	case "cd", "pushd":
		for _, w := range words[1:] {
			if !w.known {
				f.unbound(words[0].text+" "+w.text, "computed when it runs")
			}
			for _, p := range f.places(w.text) {
				if len(f.bases) < maxBases {
					f.bases = append(f.bases, p)
				}
			}
		}
		return
	}
	f.command(words, depth)
}

// expand are the words that one word of shell text becomes: more than one
// where it is a pattern.
func (f *finder) expand(w *syntax.Word) []word {
	v := f.value(w)
	if !v.known || !strings.ContainsAny(v.text, "*?[") {
		return []word{v}
	}
	out := []word{v}
	for _, pattern := range f.places(v.text) {
		for _, p := range f.glob(pattern) {
			out = append(out, word{text: f.dir + "/" + p, known: true})
		}
	}
	return out
}

// value is a word of shell text, as far as it can be known. What a variable
// holds is a guess: it may be set in ways that are not seen here.
func (f *finder) value(w *syntax.Word) word {
	var b strings.Builder
	known := true
	if f.literal(&b, w.Parts, &known) && known {
		return word{text: b.String(), known: true}
	}
	guess := b.String()
	b.Reset()
	_ = syntax.NewPrinter().Print(&b, w)
	return word{text: b.String(), guess: guess}
}

// literal writes the parts of a word; false ends it where one is computed.
func (f *finder) literal(b *strings.Builder, parts []syntax.WordPart, known *bool) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			for i := 0; i < len(p.Value); i++ {
				if p.Value[i] == '\\' && i+1 < len(p.Value) {
					i++
				}
				b.WriteByte(p.Value[i])
			}
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
			*known = *known && (!p.Dollar || !strings.Contains(p.Value, `\`))
		case *syntax.DblQuoted:
			if !f.literal(b, p.Parts, known) {
				return false
			}
		case *syntax.ParamExp:
			*known = false
			if p.Param == nil {
				b.Reset()
				return false
			}
			b.WriteString(f.vars[p.Param.Value])
		default:
			*known = false
			b.Reset()
			return false
		}
		if b.Len() > maxText {
			*known = false
			b.Reset()
			return false
		}
	}
	return true
}
