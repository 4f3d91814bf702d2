package pane

import (
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

// Para is one paragraph of a page.
type Para struct {
	Label string // in the left column; "" goes on below the one before
	Text  string // line breaks are kept
	Role  screen.Role
	Exact bool     // text that must be judged exactly: hidden characters are shown
	Head  bool     // a heading: Label only
	Wide  bool     // what takes the column of labels too: tables keep their shape
	Table bool     // exact lines that are not wrapped: the page scrolls sideways
	Rows  []Row    // lines that are cut, not wrapped, in place of Text
	JSON  core.Raw // a document whose parts fold, in place of Text
	Flow  Flow     // what lays itself out, in place of Text
}

// Plain is the paragraph's text where nothing is drawn.
func (p *Para) Plain() string {
	if p.Flow == nil {
		return p.Text
	}
	var lines []string
	for _, l := range p.Flow.Lines(unbroken) {
		lines = append(lines, l.Text)
	}
	return strings.Join(lines, "\n")
}

// unbroken is a width that no line has.
const unbroken = 1 << 20

// Flow is text that lays itself out in lines of at most so many cells, such as a diff.
type Flow interface {
	Lines(width int) []screen.Styled
}

// Row is a line that is cut where the room ends, such as one of a tree.
type Row struct {
	Lead string // drawn before the text, in the role of borders
	Text string
	Role screen.Role
	Note string // after the text, never cut
	Item Item   // what enter opens; may be empty
}

// Paras collects paragraphs; empty ones are left out.
type Paras []Para

// Head adds a heading.
func (p *Paras) Head(text string) { *p = append(*p, Para{Label: text, Head: true}) }

// Add adds a line when it says something.
func (p *Paras) Add(label, text string, role screen.Role) {
	if text != "" {
		*p = append(*p, Para{Label: label, Text: text, Role: role})
	}
}

// State adds a line that says how something is.
func (p *Paras) State(env *Env, label string, s State) {
	if s.Word != "" {
		p.Add(label, s.Label(env.Glyphs), s.Role())
	}
}

// Link adds a line that enter opens.
func (p *Paras) Link(label, text string, role screen.Role, it Item) {
	if text != "" {
		*p = append(*p, Para{Label: label, Rows: []Row{{Text: text, Role: role, Item: it}}})
	}
}

// Exact adds text that must be judged exactly and returns its number.
func (p *Paras) Exact(label, text string, role screen.Role) int {
	if text != "" {
		*p = append(*p, Para{Label: label, Text: text, Role: role, Exact: true})
	}
	return len(*p) - 1
}

// Whole adds a text that must be judged exactly, in the whole width.
func (p *Paras) Whole(text string) {
	*p = append(*p, Para{Text: strings.TrimRight(text, "\n"), Exact: true, Wide: true})
}

// Flow adds what lays itself out, in the whole width, and returns its number.
func (p *Paras) Flow(of Flow) int {
	*p = append(*p, Para{Flow: of, Wide: true})
	return len(*p) - 1
}

// JSON adds a document whose objects, arrays and long strings fold: z folds or
// opens what is under the cursor, Z everything, enter too. Without a label it
// takes the whole width. What is no JSON is shown as text. Hidden characters
// are spelled out. An approval's arguments are never shown so: they must be
// seen whole.
func (p *Paras) JSON(label string, raw core.Raw) {
	if len(raw) > 0 {
		*p = append(*p, Para{Label: label, JSON: raw, Wide: label == ""})
	}
}

// Document adds a document under a heading of its own.
func (p *Paras) Document(head string, raw core.Raw) {
	if len(raw) > 0 {
		p.Head(head)
		p.JSON("", raw)
	}
}

// Rows adds lines that are cut and not wrapped, such as a tree. Without a
// label they take the whole width.
func (p *Paras) Rows(label string, rows []Row) {
	if len(rows) > 0 {
		*p = append(*p, Para{Label: label, Rows: rows, Wide: label == ""})
	}
}

// Made is when something was made, and by whom.
func Made(now, t time.Time, by string) string {
	if by == "" {
		return When(now, t)
	}
	return When(now, t) + " by " + by
}

// When is a time with its age, for paragraphs.
func When(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Clock(now, t) + " (" + Age(now, t) + " ago)"
}
