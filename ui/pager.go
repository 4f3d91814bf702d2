package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/term"
)

// Bounds of a listing: deeper or further is left out, and said so.
const (
	listDepth = 4
	listMost  = 2000
)

// page shows what is under the cursor in the operator's pager. The screen is
// given up for as long, and drawn anew after.
func (d *dialog) page() tea.Cmd {
	p, ok := d.focused().(pane.Papered)
	if !ok {
		return d.say(true, "", "there is nothing here for a pager")
	}
	paper, ok := p.Paper(d.env())
	switch {
	case !ok:
		return d.say(true, "", "there is nothing here for a pager")
	case d.opt.Lend == nil:
		return d.say(true, "", "no pager is available here")
	case paper.Dir == "":
		return d.showPaper(term.CleanLines(paper.Text))
	}
	dir := d.path(paper.Dir)
	return beside(d, func() (string, error) { return listing(dir) }, d.showPaper)
}

func (d *dialog) showPaper(text string) tea.Cmd {
	return beside(d, func() (string, error) { return draft("page.txt", text) }, func(path string) tea.Cmd {
		return d.lendTo(d.opt.Pager, path, func(err error) tea.Msg {
			_ = os.Remove(path)
			return followUp(func() tea.Cmd {
				if err != nil {
					return d.say(true, "", "the pager ended badly: "+err.Error())
				}
				return nil
			})
		})
	})
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// listing is what a directory holds, with sizes and times, as clean text.
func listing(dir string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", term.Clean(dir))
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil && path == dir:
			return err
		case path == dir:
			return nil
		case err != nil:
			fmt.Fprintf(&b, "%s: %s\n", term.Clean(rel), term.Clean(err.Error()))
			return nil
		case n >= listMost:
			return errEnough
		}
		n++
		name, size, when := rel, "", ""
		if info, err := d.Info(); err == nil {
			when = info.ModTime().UTC().Format("2006-01-02 15:04")
			if !d.IsDir() {
				size = fmt.Sprint(info.Size())
			}
		}
		skip := error(nil)
		if d.IsDir() {
			name += string(filepath.Separator)
			if strings.Count(rel, string(filepath.Separator)) >= listDepth-1 || d.Name() == ".git" {
				name, skip = name+" …", filepath.SkipDir
			}
		}
		fmt.Fprintf(&b, "%12s  %s  %s\n", size, when, term.Clean(name))
		return skip
	})
	if errors.Is(err, errEnough) {
		fmt.Fprintf(&b, "\nmore than %d entries: the rest is left out\n", listMost)
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("list %s: %w", dir, err)
	}
	if n == 0 {
		b.WriteString("(empty)\n")
	}
	return b.String(), nil
}
