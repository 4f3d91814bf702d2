package pane

import (
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

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

// Exact adds text that must be judged exactly and returns its number.
func (p *Paras) Exact(label, text string, role screen.Role) int {
	*p = append(*p, Para{Label: label, Text: text, Role: role, Exact: true})
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

// Rows adds lines that are cut and not wrapped, such as a tree. Without a
// label they take the whole width.
func (p *Paras) Rows(label string, rows []Row) {
	if len(rows) > 0 {
		*p = append(*p, Para{Label: label, Rows: rows, Wide: label == ""})
	}
}

// When is a time with its age, for paragraphs.
func When(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Clock(now, t) + " (" + Age(now, t) + " ago)"
}
