package record

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/ui/compare"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const compareName = "compare"

// Comparer compares two runs, tasks or agents; *engine.Engine does.
type Comparer interface {
	Compare(ctx context.Context, tenant, a, b string) (dag.Comparison, error)
}

// NewCompare makes the sheet of how two runs differ. Its item's id is both names,
// with a space between.
func NewCompare(of Comparer) *pane.Detail[dag.Comparison] {
	return pane.NewDetail(pane.DetailSpec[dag.Comparison]{
		Name: compareName, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (dag.Comparison, error) {
			a, b, ok := strings.Cut(id, " ")
			if !ok {
				return dag.Comparison{}, core.Invalid("compare", id, "two of run:ID, task:ID, agent:NAME, session:ID or an agent's name")
			}
			return of.Compare(ctx, tenant, a, b)
		},
		Settled: func(c *dag.Comparison) bool { return c.A.Exit != "" && c.B.Exit != "" },
		Title:   func(c *dag.Comparison) string { return "compare " + c.A.Subject + " with " + c.B.Subject },
		Text:    func(_ pane.Env, c *dag.Comparison, out *pane.Paras) { compareText(c, out) },
	})
}

func compareText(c *dag.Comparison, out *pane.Paras) {
	facts := append([]compare.Fact{{A: "A", B: "B"}}, compare.Facts(c)...)
	wide := 0
	for _, f := range facts {
		wide = max(wide, utf8.RuneCountInString(f.A))
	}
	for _, f := range facts {
		out.Rows(f.Name, []pane.Row{{Text: fmt.Sprintf("%-*s  %s", wide, f.A, f.B), Role: roleOf(f)}})
	}
	section(out, "files", c, compare.Files(c))
	section(out, "steps: - A, + B", c, compare.Lines(c))
}

// roleOf has what differs stand out.
func roleOf(f compare.Fact) screen.Role {
	if f.A != f.B {
		return screen.Title
	}
	return screen.Text
}

func section(out *pane.Paras, head string, c *dag.Comparison, lines []compare.Line) {
	if len(lines) == 0 {
		return
	}
	out.Head(head)
	rows := make([]pane.Row, len(lines))
	for i, l := range lines {
		rows[i] = pane.Row{Lead: l.Sign + " ", Text: l.Text, Role: l.Role}
		switch {
		case l.Event != "":
			rows[i].Item = pane.Item{Kind: sheetName, ID: l.Event}
		case l.File != "":
			rows[i].Item = pane.Item{Kind: "diff", ID: "compare:" + c.A.Subject + " " + c.B.Subject, Part: l.File}
		}
	}
	out.Rows("", rows)
}
