package pane

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

// Bounds of a document that folds.
const (
	foldOpen    = 200  // lines that are open at first
	foldMost    = 5000 // lines that "fold-all" opens
	foldMembers = 1000 // members of one value that are shown; opening its last line shows as many more
	foldString  = 1000 // bytes from which on a string folds
	foldPreview = 300  // bytes of what is folded that its line may show
)

// folds is a JSON document as lines, of which those of an object, an array or
// a long string fold. What is folded is not even taken apart.
type folds struct {
	root *fold
	text string     // as it was given
	laid []pageLine // its lines in so much room, nil when they have changed
	room int
}

// fold is one value of the document.
type fold struct {
	up    *fold
	key   string // its name as JSON; "" in an array
	raw   string // the value, without white space
	depth int
	open  bool
	last  bool    // no comma follows
	kids  []*fold // once it was opened
	shown int     // of the kids
}

// foldLine is one line of the document.
type foldLine struct {
	of   *fold
	part foldPart
}

// foldPart says which line of a value it is.
type foldPart uint8

const (
	foldHead foldPart = iota // the value, or its beginning
	foldMore                 // members that are not shown
	foldEnd                  // the closing bracket
)

// newFolds takes a document; ok is false for one that is no JSON.
func newFolds(raw core.Raw) (f *folds, ok bool) {
	v := raw.Clone()
	if v.Compact() != nil {
		return nil, false
	}
	f = &folds{root: &fold{raw: string(v), last: true}, text: string(raw)}
	f.unfold(foldOpen)
	return f, true
}

// unfold opens from the outside in what fits in so many lines; something is
// opened at least.
func (f *folds) unfold(most int) {
	lines := 1
	for queue := []*fold{f.root}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if !v.nested() {
			continue
		}
		v.part()
		if lines += v.shown + 1; lines > most && v != f.root {
			return
		}
		v.open = true
		queue = append(queue, v.kids[:v.shown]...)
	}
}

// all folds everything but the outermost value, or opens it when all is folded.
func (f *folds) all() {
	was := false // something was open
	for _, v := range f.root.kids {
		was = v.shut() || was
	}
	if !was || !f.root.open {
		f.unfold(foldMost)
	}
}

// shut folds a value and all within; it tells whether anything was open.
func (v *fold) shut() bool {
	was := v.open
	for _, kid := range v.kids {
		was = kid.shut() || was
	}
	v.open = false
	return was
}

// lines are the lines in sight, after those there are.
func (v *fold) lines(out []foldLine) []foldLine {
	out = append(out, foldLine{v, foldHead})
	if !v.open || !v.nested() {
		return out
	}
	for _, kid := range v.kids[:v.shown] {
		out = kid.lines(out)
	}
	if v.shown < len(v.kids) {
		out = append(out, foldLine{v, foldMore})
	}
	return append(out, foldLine{v, foldEnd})
}

// toggle folds or opens what a line belongs to, and gives the value whose
// first line is then the place to be.
func (l foldLine) toggle() *fold {
	v := l.of
	switch {
	case l.part == foldMore:
		v.shown = min(v.shown+foldMembers, len(v.kids))
		return nil
	case !v.folds() && v.up != nil: // a plain value folds what it stands in
		v = v.up
	}
	v.part()
	v.open = !v.open
	return v
}

// nested tells whether the value has members.
func (v *fold) nested() bool { return len(v.raw) > 2 && (v.raw[0] == '{' || v.raw[0] == '[') }

// folds tells whether the value's first line can be folded and opened.
func (v *fold) folds() bool { return v.nested() || v.long() }

func (v *fold) long() bool { return len(v.raw) > foldString && v.raw[0] == '"' }

// part takes the value apart into its members, once.
func (v *fold) part() {
	if v.kids != nil || !v.nested() {
		return
	}
	object, raw := v.raw[0] == '{', v.raw
	for i := 1; i < len(raw)-1; i++ {
		kid := &fold{up: v, depth: v.depth + 1}
		if object {
			end := valueEnd(raw, i)
			kid.key, i = raw[i:end], end+1
		}
		end := valueEnd(raw, i)
		kid.raw, i = raw[i:end], end
		v.kids = append(v.kids, kid)
	}
	v.kids[len(v.kids)-1].last = true
	v.shown = min(len(v.kids), foldMembers)
}

// valueEnd is the index after the value that begins at i of valid JSON
// without white space.
func valueEnd(raw string, i int) int {
	for depth := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 && i < len(raw) { // a string or a bracket ends a value
			return i + 1
		}
	}
	return len(raw)
}

// text is a line's text after its key, and what is said of what it hides.
func (l foldLine) text() (text, note string) {
	v, comma := l.of, ","
	if v.last {
		comma = ""
	}
	switch {
	case l.part == foldMore:
		return "", fmt.Sprintf("%d of %d more", min(len(v.kids)-v.shown, foldMembers), len(v.kids)-v.shown)
	case l.part == foldEnd:
		return v.raw[len(v.raw)-1:] + comma, ""
	case v.folds() && !v.open:
		if v.long() {
			note = fmt.Sprintf("%d bytes", len(v.raw))
		} else {
			v.part()
			note = Plural(len(v.kids), "member")
		}
		if len(v.raw) > foldPreview {
			return strings.ToValidUTF8(v.raw[:foldPreview], ""), note
		}
		return v.raw, note
	case v.nested():
		return v.raw[:1], ""
	}
	return v.raw + comma, ""
}
