package cad

import (
	"fmt"
	"slices"
	"strings"
)

// fact is one thing that a goal says. A pattern takes each fact that it carries
// out; one that is left is refused.
type fact struct {
	of    string // the feature; "" is the part
	name  string // a length, count, size, a quality, "there" or "none"
	value float64
	size  []float64
	text  string // as the goal has it
	used  bool
}

// reading is the state of reading a goal's facts from left to right.
type reading struct {
	*goal

	at      int
	owner   *feature // whose lengths are told; nil is the part
	noun    bool     // the clause has named whose
	last    *feature // may go on after a comma
	denied  bool
	nothing bool // after a no, so far
	unknown []string
	nouns   []string // of parts
}

// readFacts tells what each word and number is of. What can't be told is
// refused, all in one.
func (g *goal) readFacts() error {
	r := &reading{goal: g}
	for r.at < len(g.words) {
		if err := r.next(); err != nil {
			return err
		}
	}
	return r.close()
}

func (r *reading) word(ahead int) word {
	if i := r.at + ahead; i < len(r.words) {
		return r.words[i]
	}
	return word{}
}

func (r *reading) say(of *feature, name string, value float64, text ...string) {
	f := fact{name: name, value: value, text: strings.Join(text, " ")}
	if of != nil {
		f.of = of.name
	}
	r.facts = append(r.facts, f)
}

func (r *reading) strange(w word, why string) {
	text := fmt.Sprintf("%q", w.raw)
	if why != "" {
		text += " (" + why + ")"
	}
	if !slices.Contains(r.unknown, text) {
		r.unknown = append(r.unknown, text)
	}
}

// next reads one word, or a number with its name.
func (r *reading) next() error {
	w := r.word(0)
	f, p, quality := featureOf(w.text), patternOf(w.text), qualityOf(w.text)
	_, property := properties()[w.text]
	switch {
	case w.numbers == nil && (slices.Contains(strong, w.text) || slices.Contains(weak, w.text)):
		return r.separate(w)
	case slices.Contains(denies, w.text):
		r.nobody()
		r.denied, r.nothing, r.owner, r.last, r.noun = true, true, nil, nil, true
	case r.nothing && f != nil && f.deniable:
		r.say(f, "none", 0, w.raw)
		r.nothing = false
	case r.nothing && slices.Contains(deniable, w.text):
		r.nothing = false
	case r.denied:
		r.strange(w, "after no or without")
	case w.is(1):
		r.number(w)
		return nil
	case w.numbers != nil:
		r.size(w)
	case slices.Contains(numberWords, w.text) || w.text == "single":
		if n := max(1, slices.Index(numberWords, w.text)+1); !r.count(w, float64(n)) {
			r.strange(w, "it counts nothing")
		}
	case f != nil:
		r.feature(w, f)
	case quality != "" && r.qualifies(w, quality):
	case property:
		r.property(w)
		return nil
	case w.text == "angle" && p != nil && r.word(1).text == "bracket":
		r.say(nil, "L", 0, w.raw)
	case p != nil:
		r.noun, r.owner = true, nil
		r.name(w, p)
	default:
		r.strange(w, whyUnmade(w.text))
	}
	r.at++
	return nil
}

// nobody refuses a no of nothing.
func (r *reading) nobody() {
	if r.nothing {
		r.strange(word{raw: "no"}, "it denies nothing")
	}
	r.nothing = false
}

func (r *reading) name(w word, p *pattern) {
	if w.text != w.raw && !slices.ContainsFunc(r.facts, func(f fact) bool { return f.of == "" && f.name == "count" }) {
		r.strange(w, "a goal makes one part; say "+w.text)
	}
	r.nouns = append(r.nouns, w.text)
	r.part, r.last = p, nil
}

// separate ends a clause.
func (r *reading) separate(w word) error {
	r.at++
	next := r.word(0)
	if f := featureOf(next.text); r.denied && w.text == "and" && f != nil && r.word(1).numbers == nil {
		return r.ambiguous("whether there is to be a "+f.name, "write no or with before "+next.raw)
	}
	r.nobody()
	if r.owner != nil {
		r.last = r.owner
	}
	if slices.Contains(strong, w.text) {
		r.last = nil
	}
	r.owner, r.noun, r.denied = nil, false, false
	return nil
}

// number reads a number: how many, or a length with its name on either side.
func (r *reading) number(w word) {
	v, next := w.numbers[0], r.word(1)
	if !w.unit && r.count(w, v) {
		r.at++
		return
	}
	f := featureOf(next.text)
	p, named := properties()[next.text]
	open := r.owner != nil && r.owner.main != "" && !r.has(r.owner, r.owner.main)
	long, whole := properties()[r.word(2).text]
	whole = whole && !long.after && f != nil && slices.Contains(f.takes, long.name)
	after := open && featureOf(r.words[r.at-1].text) == r.owner // wall 3
	switch {
	case after && f != nil && f.main != "":
		r.strange(w, "it is of the "+r.owner.name+" or of the "+f.name)
		r.at++
	case after && named && slices.Contains(r.owner.takes, p.name) && featureOf(r.word(2).text) != nil: // wall 3 thick lid
		r.strange(w, "it is of the "+r.owner.name+" or of the "+featureOf(r.word(2).text).name)
		r.at += 2
	case f != nil && f.main != "" && next.numbers == nil && whole && !r.word(3).is(1): // 3 mm wall thickness
		r.say(f, long.name, exact(v*long.times), w.raw, next.raw, r.word(2).raw)
		r.feature(next, f)
		r.at += 3
	case f != nil && f.main != "" && next.numbers == nil:
		r.say(f, f.main, v, w.raw, next.raw)
		r.at++
	case named && !(after && !p.after && r.word(2).is(1)):
		r.length(p, v, w.raw+" "+next.raw, true)
		r.at += 2
	case open:
		r.say(r.owner, r.owner.main, v, r.owner.name, w.raw)
		r.at++
	default:
		r.strange(w, "nothing says what it is")
		r.at++
	}
}

// count reads how many there are to be of what comes next.
func (r *reading) count(w word, n float64) bool {
	if r.at+1 > len(r.words) {
		return false
	}
	of := counted(r.words[r.at+1:])
	if of == nil {
		return false
	}
	f := featureOf(of.text)
	r.say(f, "count", n, w.raw, of.raw)
	r.owner, r.noun = f, f != nil
	return true
}

// property reads a name of a length that stands before its number.
func (r *reading) property(w word) {
	p, next := properties()[w.text], r.word(1)
	follows, isName := properties()[r.word(2).text]
	switch {
	case next.is(1) && !(isName && follows.after) && !(p.after && isName):
		r.length(p, next.numbers[0], w.raw+" "+next.raw, false)
		r.at += 2
	case next.is(2) && p.name == "diameter" && p.times == 1 && r.owner == nil: // ø20x100
		r.at++
	case p.after && r.at > 0 && len(r.words[r.at-1].numbers) > 1: // 4x3x2 tall
		r.say(nil, "last "+p.name, 0, w.raw)
		r.at++
	case w.text == "l": // an L bracket
		r.say(nil, "L", 0, w.raw)
		r.at++
	default:
		r.strange(w, "it has no number")
		r.at++
	}
}

// length tells a length of whom the clause speaks: the feature that it has named
// or, where the number stands first, names next; one that goes on after a comma;
// or the part.
func (r *reading) length(p property, v float64, text string, before bool) {
	of := r.owner
	if next := r.ahead(false); before && of == nil && next != nil && (!r.noun || featureOf(r.word(2).text) == next) { // 2 mm thick walls
		of = next
	}
	if of == nil && !r.noun && r.last != nil && !r.has(r.last, p.name) {
		of = r.last
	}
	if of != nil && !slices.Contains(of.takes, p.name) {
		of = nil
	}
	r.say(of, p.name, exact(v*p.times), text)
}

// ahead is the feature that the clause names next, nil when it is one that a
// number is told of there.
func (r *reading) ahead(numbered bool) *feature {
	for i := r.at; i < len(r.words); i++ {
		w := &r.words[i]
		f := featureOf(w.text)
		switch {
		case f != nil && (numbered || i+1 == len(r.words) || r.words[i+1].numbers == nil):
			return f
		case f != nil, patternOf(w.text) != nil, w.numbers == nil && (slices.Contains(strong, w.text) || slices.Contains(weak, w.text)):
			return nil
		}
	}
	return nil
}

func (r *reading) size(w word) {
	f := fact{name: "size", size: w.numbers, text: w.raw}
	if r.owner != nil && !r.owner.sized {
		f.of = r.owner.name
	}
	r.facts = append(r.facts, f)
}

// feature reads the name of a feature. In "4 holes, hole diameter 6" it is a part
// of the length's name.
func (r *reading) feature(w word, f *feature) {
	r.owner, r.noun = f, true
	if w.raw != w.text && f.deniable && !f.counted && w.raw != "feet" {
		r.strange(w, "how many; one is made")
	}
	if _, named := properties()[r.word(1).text]; !named || !f.counted || !r.has(f, "there") {
		r.say(f, "there", 0, w.raw)
	}
}

// qualifies tells what a quality is of: the feature that the clause has named, the
// next one, or the part.
func (r *reading) qualifies(w word, quality string) bool {
	for _, f := range []*feature{r.owner, r.ahead(true), r.last} {
		if f != nil && slices.Contains(f.qualities, quality) {
			r.say(f, quality, 0, w.raw)
			return true
		}
	}
	if whyUnmade(w.text) != "" { // rounded edges
		return false
	}
	r.say(nil, quality, 0, w.raw)
	return true
}

func (r *reading) has(f *feature, name string) bool {
	return slices.ContainsFunc(r.facts, func(have fact) bool { return have.of == f.name && have.name == name })
}

// close refuses what nobody understood, and finds the one part.
func (r *reading) close() error {
	r.nobody()
	var why []string
	if r.part == nil && slices.ContainsFunc(r.facts, func(f fact) bool { return f.name == assembled }) {
		r.part = patternOf("box")
	}
	if r.part == nil {
		why = append(why, "missing: what is to be made")
	}
	if len(r.unknown) > 0 {
		why = append(why, "not understood: "+strings.Join(r.unknown, ", "))
	}
	if len(why) > 0 {
		missing := []string{}
		if r.part == nil {
			missing = append(missing, "what is to be made")
		}
		return r.refused(missing, "%s; %s; --agent NAME asks an agent about anything else", strings.Join(why, "; "), known()).With("unknown", r.unknown)
	}
	if len(r.nouns) > 1 {
		slices.Sort(r.nouns)
		return r.refused([]string{"which of " + strings.Join(r.nouns, ", ")},
			"ambiguous: it speaks of %s; say one of them, or ask an agent with --agent NAME", strings.Join(r.nouns, " and "))
	}
	return nil
}

// length takes a length that the goal gives, under one of some names. It is 0
// when there is none.
func (g *goal) length(of string, names ...string) float64 {
	for i := range g.facts {
		if f := &g.facts[i]; f.of == of && !f.used && slices.Contains(names, f.name) {
			f.used = true
			return f.value
		}
	}
	return 0
}

// either takes a length that can be told of one of two: the wall, or the part.
func (g *goal) either(of, name, orOf, orName string) float64 {
	if v := g.length(of, name); v > 0 {
		return v
	}
	return g.length(orOf, orName)
}

// says takes what a goal says without a number.
func (g *goal) says(of string, names ...string) bool {
	for i := range g.facts {
		if f := &g.facts[i]; f.of == of && !f.used && slices.Contains(names, f.name) {
			f.used = true
			return true
		}
	}
	return false
}

// speaks reports whether the goal says anything of a feature, without taking it.
func (g *goal) speaks(of string) bool {
	return slices.ContainsFunc(g.facts, func(f fact) bool { return f.of == of && f.name != "none" })
}

// size takes the size of one of some numbers of lengths, nil when there is none.
func (g *goal) size(lengths ...int) []float64 {
	for i := range g.facts {
		if f := &g.facts[i]; f.of == "" && f.name == "size" && !f.used && slices.Contains(lengths, len(f.size)) {
			f.used = true
			return f.size
		}
	}
	return nil
}

// left refuses what the pattern has not taken.
func (g *goal) left() error {
	var left []string
	for _, f := range g.facts {
		switch {
		case f.used, f.name == "none" && !g.speaks(f.of), f.of == "" && f.name == "count" && f.value == 1, f.of == "" && slices.Contains(g.part.is, f.name):
		case f.name == "none":
			return g.ambiguous("whether there is to be a "+f.of, "say it once")
		case f.of == "" || strings.Contains(f.text, f.of):
			left = append(left, fmt.Sprintf("%q", f.text))
		default:
			left = append(left, fmt.Sprintf("%q of the %s", f.text, f.of))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return g.refused(left, "%s: no place for %s; it is told by %s, each once; --agent NAME asks an agent about anything else", g.part.name, strings.Join(left, ", "), g.part.told).
		With("pattern", g.part.name).With("unknown", left)
}
