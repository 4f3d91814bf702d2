package pane

import (
	"strings"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/screen"
)

// Files writes what an approval's files hold, as judge.Card read them, and
// returns the last paragraph.
func Files(a *judge.Approval, t *Paras) (last int) {
	t.Add("bound", strings.TrimPrefix(a.Bound+". "+a.Caveat, ". "), screen.Text)
	for i := range a.Action.Files {
		f := &a.Action.Files[i]
		role := screen.Accent
		if f.Unbound != "" {
			role = screen.Warn
		}
		last = t.Exact("file", f.Line(), role)
		if body := f.Diff + f.Text; body != "" {
			last = t.Exact("", body, screen.Text)
		}
	}
	return last
}
