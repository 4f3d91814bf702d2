package ui

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/fleet"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// longer marks the label of a question that is answered with lines of text.
const longer = "…"

// compose asks for a text of any number of lines, for an agent if it names one.
func (d *dialog) compose(title, agent string, then func(string) tea.Cmd) tea.Cmd {
	p := overlay.NewCompose(title)
	d.over.Push(p, func(a overlay.Action) tea.Cmd {
		switch a.Kind {
		case overlay.Submit:
			return then(a.Text)
		case overlay.Edit:
			return d.inEditor("text.md", a.Text, func(text string) tea.Cmd {
				p.SetValue(strings.TrimSuffix(text, "\n")) // which editors end a file with
				return nil
			})
		}
		return nil
	})
	return d.offerWords(p, agent)
}

// Bounds of the files that are offered for a message.
const (
	offerDepth = 8
	offerMost  = 2000
	offerTime  = 2 * time.Second
)

// addressee is the one agent that a text is for, "" for none or several.
func addressee(items []pane.Item) string {
	if len(items) != 1 {
		return ""
	}
	if items[0].Agent == "" && items[0].Kind == "agent" {
		return items[0].ID
	}
	return items[0].Agent
}

// offerWords has tab complete the commands of an agent, and the files of its directory that
// it can be handed.
func (d *dialog) offerWords(p *overlay.Compose, name string) tea.Cmd {
	i := slices.IndexFunc(d.snap.Agents, func(a *fleet.Agent) bool { return a.Name == name })
	if i < 0 || name == "" {
		return nil
	}
	a := d.snap.Agents[i]
	for _, c := range a.Offered().Commands {
		about := c.Description
		if c.Hint != "" {
			about = strings.TrimSpace(about + " (" + c.Hint + ")")
		}
		p.Offers = append(p.Offers, overlay.Offer{Word: "/" + c.Name, About: about})
	}
	if a.Runtime != "acp" { // others read the path in the text
		return nil
	}
	dir := d.path(cmp.Or(a.Dir, "."))
	return d.track(func() tea.Msg {
		files := filesBelow(dir)
		return followUp(func() tea.Cmd {
			for _, path := range files {
				p.Offers = append(p.Offers, overlay.Offer{Word: "@" + path, Text: fleet.Mention(path)})
			}
			return nil
		})
	})
}

// filesBelow lists files by their paths from a directory, without what hides and what other
// programs keep there. It follows no links.
func filesBelow(dir string) (files []string) {
	enough := errors.New("enough")
	until := time.Now().Add(offerTime)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, bad := filepath.Rel(dir, path)
		switch {
		case err != nil || bad != nil || rel == ".":
			if d != nil && d.IsDir() && rel != "." {
				return fs.SkipDir
			}
			return nil
		case len(files) >= offerMost || time.Now().After(until):
			return enough
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || strings.Count(rel, "/") >= offerDepth):
			return fs.SkipDir
		case d.Type().IsRegular() && !strings.ContainsAny(rel, "\"\n"):
			files = append(files, rel)
		}
		return nil
	})
	return files
}
