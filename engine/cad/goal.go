package cad

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"swarmdeck/engine/core"
)

// goal is what a text asks for, read by the template of its part. Lengths are mm.
type goal struct {
	text string
	part *template
	told goalFacts
}

// goalFacts are the numbers of each name that a goal gives, and 1 of a clause that gives none.
type goalFacts map[string][]float64

// template is a part that is made without asking anybody, by what it is told by. Every
// word of a goal stands in a clause of it; a goal with another one is refused.
type template struct {
	nouns   string // with blanks between
	must    string // what has to be told, with commas between
	often   bool   // it may be told again and again
	clauses string // names of goalForms, with commas between; the first shows what must be told
	plan    func(*goal) ([]PlannedTask, error)
}

// token is a word, a number, or a size such as 100x80x20.
type token struct {
	raw  string
	size []float64 // mm
	unit bool      // it says its unit
}

// wording is what goals are read by, which is made when the first one is.
type wording struct {
	templates          []template
	forms              map[string][]string // see goalForms
	dropped, separates []string            // words that say nothing, and words between clauses
	counts             []string
	units              map[string]float64 // mm
}

var goalWording = sync.OnceValue(func() *wording {
	return &wording{
		templates: goalTemplates(),
		forms:     goalForms(),
		dropped:   strings.Fields("a an the of please make create build design me us"),
		separates: strings.Fields(", ; . : & with and having"),
		counts:    strings.Fields("one two three four five six seven eight nine ten eleven twelve"),
		units:     map[string]float64{"mm": 1, "cm": 10, "m": 1000, "inch": 25.4, "inches": 25.4, `"`: 25.4},
	}
})

// goalText cuts a goal into numbers, words and marks. Nothing is passed over.
var goalText = core.Pattern(`[-−+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|[\pL]+|\S`)

// planFor plans a goal by the template of its part. What is missing, told twice or not
// understood is refused by name.
func planFor(text string) (Scenario, error) {
	g := &goal{text: strings.ToLower(strings.Join(strings.Fields(text), " ")), told: goalFacts{}}
	err := g.read()
	if err != nil {
		return Scenario{}, err
	}
	tasks, err := g.part.plan(g)
	if err != nil {
		return Scenario{}, err
	}
	return Scenario{
		Name: "goal_" + g.part.name(), Description: text, Pattern: Mixed, Agents: seatsOf(tasks), Tasks: tasks,
		SuccessCriteria: "Every part is a closed solid of the volume that its sizes give",
	}, nil
}

func (g *goal) read() error {
	tokens, err := g.tokens()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(tokens, func(t token) bool { g.part = templateOf(t.raw); return g.part != nil })
	if at < 0 {
		known := core.Map(goalWording().templates, func(p template) string { return p.name() })
		return g.refused([]string{"what is to be made"}, "missing: what is to be made; known are %s; --agent NAME asks an agent about anything else", strings.Join(known, ", "))
	}
	tokens[at] = token{raw: ","}
	for len(tokens) > 0 {
		end := slices.IndexFunc(tokens, func(t token) bool { return slices.Contains(goalWording().separates, t.raw) })
		if end < 0 {
			end = len(tokens)
		}
		if err := g.take(tokens[:end]); err != nil {
			return err
		}
		tokens = tokens[min(end+1, len(tokens)):]
	}
	return g.whole()
}

// tokens are the words, numbers and sizes of a goal. A unit after the last number of a
// size is that of all.
func (g *goal) tokens() (out []token, err error) {
	words := goalText().FindAllString(strings.NewReplacer("×", "x", "*", "x", "mmx", "mm x", "cmx", "cm x", "ø", " diameter ", "⌀", " diameter ").Replace(g.text), -1)
	with := goalWording()
	for i := 0; i < len(words); i++ {
		w := words[i]
		if n := slices.Index(with.counts, w); n >= 0 {
			out = append(out, token{raw: w, size: []float64{float64(n + 1)}})
			continue
		}
		if !strings.ContainsAny(w, "0123456789") {
			if !slices.Contains(with.dropped, w) {
				out = append(out, token{raw: w})
			}
			continue
		}
		var t token
		var scale []float64
		for {
			v, err := strconv.ParseFloat(words[i], 64)
			if err != nil || strings.Trim(words[i], "0123456789.") != "" {
				return nil, core.Errorf(core.InvalidInput, "goal: the number %s is not allowed; allowed: digits with a decimal point, as in 10.5", core.ClipTo(words[i], 40)).
					With("field", "goal").With("value", words[i])
			}
			t.raw, t.size = t.raw+words[i], append(t.size, v)
			if i+1 < len(words) && with.units[words[i+1]] > 0 {
				i++
				t.raw, scale = t.raw+" "+words[i], append(scale, with.units[words[i]])
			}
			if i+2 >= len(words) || words[i+1] != "x" && words[i+1] != "by" || !strings.ContainsAny(words[i+2], "0123456789") {
				break
			}
			i += 2
			t.raw += "x"
		}
		t.unit = len(scale) > 0
		switch last := with.units[words[i]]; {
		case t.unit && len(scale) != len(t.size) && (len(scale) > 1 || last == 0):
			return nil, g.refused([]string{"the unit of each number of a size"}, "ambiguous: the unit of some numbers of %s; write 10x8x2 cm, or a unit after each", t.raw)
		case t.unit:
			for i := range t.size {
				t.size[i] = exact(t.size[i] * scale[min(i, len(scale)-1)])
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// take reads the words between two separators as clauses, one after the other. They
// must have one reading.
func (g *goal) take(tokens []token) error {
	ways, upto := make([][]goalFacts, len(tokens)+1), 0 // to read the tokens before each, at most two
	ways[0] = []goalFacts{{}}
	for from := range tokens {
		for name := range strings.SplitSeq(g.part.clauses, ",") {
			for _, form := range goalWording().forms[name] {
				mine, n := match(name, form, tokens[from:])
				for _, before := range ways[from][:min(len(ways[from]), n*2)] {
					upto = max(upto, from+n)
					way := joined(before, mine)
					same := func(t goalFacts) bool { return fmt.Sprint(t) == fmt.Sprint(way) }
					if to := &ways[from+n]; len(*to) < 2 && !slices.ContainsFunc(*to, same) {
						*to = append(*to, way)
					}
				}
			}
		}
	}
	switch found := ways[len(tokens)]; len(found) {
	case 0:
		rest := rawOf(tokens[upto:])
		return g.refused(nil, "%s: not understood: %q; it is told by %s; --agent NAME asks an agent about anything else", g.part.name(), rest, strings.Join(g.part.forms(), ", ")).With("unknown", []string{rest})
	case 1:
		g.told = joined(g.told, found[0])
		return nil
	}
	return g.refused([]string{"what is meant"}, "ambiguous: %q can be read in two ways; put commas between", rawOf(tokens))
}

func joined(a, b goalFacts) goalFacts {
	out := maps.Clone(a)
	for name, v := range b {
		out[name] = slices.Concat(out[name], v)
	}
	return out
}

// match reads one form of a clause, and says how many tokens that takes; 0 where it is
// another one.
func match(clause, form string, tokens []token) (goalFacts, int) {
	elements := strings.Fields(form)
	if len(elements) > len(tokens) {
		return nil, 0
	}
	out := goalFacts{}
	for i, e := range elements {
		t, names := tokens[i], strings.Split(strings.Trim(e, "<>"), ">x<")
		switch {
		case e[0] != '<' && !slices.Contains(strings.Split(e, "/"), t.raw):
			return nil, 0
		case e[0] == '<' && (len(t.size) != len(names) || e == "<count>" && t.unit):
			return nil, 0
		case e[0] == '<':
			for j, name := range names {
				out[name] = []float64{t.size[j]}
			}
		}
	}
	if len(out) == 0 {
		out[clause] = []float64{1}
	}
	return out, len(elements)
}

// whole refuses what is told twice, what is missing, and numbers out of range.
func (g *goal) whole() error {
	var missing []string
	for name := range strings.SplitSeq(g.part.must, ",") {
		if g.told[name] == nil {
			missing = append(missing, "the "+name)
		}
	}
	if len(missing) > 0 {
		return g.missing(strings.Join(missing, ", ") + ", as in " + g.part.forms()[0])
	}
	for _, name := range slices.Sorted(maps.Keys(g.told)) {
		if n := len(g.told[name]); n > 1 && !g.part.often {
			return g.refused([]string{name}, "%s: ambiguous: the %s is told %d times", g.part.name(), name, n)
		}
		for _, v := range g.told[name] {
			if name != "count" {
				if err := between("the "+name, v, leastSize, mostSize); err != nil {
					return err
				}
			} else if v != math.Trunc(v) || v < 1 || v > maxCount {
				return core.Invalid("goal", mm(v), fmt.Sprintf("1-%d of them", maxCount))
			}
		}
	}
	return nil
}

// of is a number that a goal gives, 0 when it gives none.
func (g *goal) of(name string) float64 {
	if v := g.told[name]; len(v) > 0 {
		return v[0]
	}
	return 0
}

// forms are how a part is told.
func (p *template) forms() (all []string) {
	for name := range strings.SplitSeq(p.clauses, ",") {
		all = append(all, goalWording().forms[name][0])
	}
	return all
}

func rawOf(tokens []token) string {
	all := core.Map(tokens, func(t token) string { return t.raw })
	return strings.Join(all, " ")
}

// missing says what a goal leaves open.
func (g *goal) missing(what string) error {
	return g.refused([]string{what}, "%s: missing: %s", g.part.name(), what).With("pattern", g.part.name())
}

func (g *goal) refused(missing []string, format string, args ...any) *core.Error {
	return core.Errorf(core.InvalidInput, "goal: "+format, args...).With("field", "goal").With("value", g.text).With("missing", missing)
}

func between(name string, v, low, high float64) error {
	if v >= low && v <= high {
		return nil
	}
	return core.Errorf(core.InvalidInput, "goal: %s of %s mm is not allowed; allowed: %s-%s mm", name, mm(v), mm(low), mm(high)).With("field", "goal").With("value", mm(v))
}

// exact takes from a length what counting in binary adds: 76.2, not
// 76.19999999999999.
func exact(v float64) float64 {
	if math.Abs(v) > 1e9 { // more than any length that is allowed
		return v
	}
	return math.Round(v*1e6) / 1e6
}

// mm is a length for people.
func mm(v float64) string { return strconv.FormatFloat(exact(v), 'f', -1, 64) }
