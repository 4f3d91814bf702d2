package review

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// ListName is the pane of all reviews and its keymap scope, WorkName that of one.
const (
	ListName = "reviews"
	WorkName = "review"
)

// Work are the trees of agents, as they are reviewed.
type Work interface {
	// Looks lists the trees of a tenant by agent, Look looks at one. What an agent
	// changed may be some seconds old.
	Looks(ctx context.Context, tenant string, f core.Filter) (core.Page[tree.Look], error)
	Look(ctx context.Context, tenant, agent string) (tree.Look, error)
	// Review is what people said of one, and Asked what is to be taken over of it and
	// is not yet, as it is now.
	Review(tenant, agent string) tree.Review
	Asked(ctx context.Context, tenant, agent string) ([]tree.Input, error)
	// Turn is the number of the newest event about an agent or its tree.
	Turn(tenant, agent string) uint64
}

// NewList makes the pane of what agents changed in their trees.
func NewList(of Work) *pane.Table[tree.Look] {
	return pane.NewTable(pane.Spec[tree.Look]{
		Name: ListName, Title: "reviews", Empty: "no agent has a tree of its own: agent create --tree makes one",
		Cols: []grid.Column{
			{Title: "AGENT", Min: 10, Weight: 2, Key: true, Middle: true},
			{Title: "FILES", Min: 5, Right: true},
			{Title: "LINES", Min: 9, Right: true},
			{Title: "BASE", Min: 10, Weight: 2, Middle: true},
			{Title: "AHEAD", Min: 5, Priority: 3, Right: true},
			{Title: "BEHIND", Min: 6, Priority: 2, Right: true},
			{Title: "REMARKS", Min: 7, Right: true},
			{Title: "CHECKS", Min: 9},
			{Title: "SAME FILES AS", Min: 13, Weight: 3, Priority: 1},
		},
		Item: workItem, Forward: true,
		Fetch: of.Looks,
		Row: func(env *pane.Env, l *tree.Look, set func(int, string, screen.Role)) {
			set(0, l.Agent, screen.Accent)
			set(1, fmt.Sprint(len(l.Changes)), screen.Text)
			switch {
			case l.Away != "":
				set(1, "?", screen.Warn)
				set(2, "on "+l.Away, screen.Warn)
			case len(l.Changes) > 0:
				set(2, fmt.Sprintf("+%d -%d", l.Added, l.Removed), screen.Text)
			default:
				set(2, "merged", screen.Dim)
				if l.Since == l.BaseCommit || l.Kind == tree.Plain {
					set(2, "nothing", screen.Dim)
				}
			}
			set(3, baseOf(l), screen.Dim)
			set(4, pane.Some(l.Ahead), screen.Text)
			set(5, pane.Some(l.BehindBy), screen.Warn)
			set(6, said(l.Remarks), screen.Text)
			word, role := checked(env, l.Checked, l.State)
			set(7, word, role)
			set(8, strings.Join(l.Overlap, "; "), screen.Warn)
		},
	})
}

// workItem is the work of an agent as a thing under the cursor: its diff.
func workItem(l *tree.Look) pane.Item {
	return pane.Item{Kind: DiffName, ID: "tree:" + l.Agent, Agent: l.Agent}
}

func baseOf(l *tree.Look) string {
	if l.Kind == tree.Plain {
		return l.Source
	}
	return l.Base
}

// said counts remarks: those that were not sent, of all.
func said(all []tree.Remark) string {
	if len(all) == 0 {
		return ""
	}
	r := tree.Review{Remarks: all}
	return fmt.Sprintf("%d/%d", len(r.Open()), len(all))
}

// checked is what the checks said, and whether of the files as they are.
func checked(env *pane.Env, c *tree.Checked, state string) (string, screen.Role) {
	switch {
	case c == nil:
		return "", screen.Dim
	case state != "" && c.State != state:
		return screen.Unknown.Glyph(env.Glyphs) + " before", screen.Dim
	case c.OK:
		return screen.Succeeded.Glyph(env.Glyphs) + " ok", screen.Good
	}
	return screen.Failure.Glyph(env.Glyphs) + " failed", screen.Bad
}

// NewWork makes the sheet of one review: what its checks printed, what was said, and
// the files.
func NewWork(of Work) *pane.Detail[tree.Look] {
	return pane.NewDetail(pane.DetailSpec[tree.Look]{
		Name: WorkName, Fetch: of.Look, Text: workText, Live: true,
		Item:  func(l *tree.Look) pane.Item { return pane.Item{Kind: WorkName, ID: l.Agent, Agent: l.Agent} },
		Title: func(l *tree.Look) string { return "review of " + l.Agent },
	})
}

func workText(env pane.Env, l *tree.Look, out *pane.Paras) {
	if l.Away != "" {
		out.Add("work", "on "+l.Away+", and not reachable from here: it is again when an engine there has the tenant", screen.Warn)
	} else {
		out.Link("work", fmt.Sprintf("%d files, +%d -%d", len(l.Changes), l.Added, l.Removed), screen.Text, workItem(l))
	}
	out.Add("of", l.Source+", from "+baseOf(l), screen.Text)
	if l.Ahead+l.BehindBy > 0 {
		out.Add("commits", fmt.Sprintf("%d ahead, %d behind", l.Ahead, l.BehindBy), screen.Text)
	}
	for _, o := range l.Overlap {
		out.Add("same files", o, screen.Warn)
	}
	if c := l.Checked; c != nil {
		out.Head("checks")
		word, role := checked(&env, c, l.State)
		out.Add("", word+"  "+pane.Age(env.Now, c.At)+" ago", role)
		ranText(&env, c.Runs, out)
	}
	if s := l.Setup; s != nil {
		out.Head("setup")
		if !s.Done {
			out.Add("", "not done: the tasks of "+l.Agent+" wait for it", screen.Warn)
		}
		ranText(&env, s.Runs, out)
	}
	if len(l.Remarks) > 0 {
		out.Head("remarks")
	}
	for _, m := range l.Remarks {
		sent := "not sent"
		if m.Sent != "" {
			sent = "sent as " + m.Sent
		}
		it := workItem(l)
		it.Part = m.File
		out.Link("", fmt.Sprintf("%d. %s  %s, %s", m.ID, m.Place(), m.By, sent), screen.Accent, it)
		out.Add("", m.Text, screen.Text)
	}
	if len(l.Changes) > 0 {
		out.Head("files")
	}
	for _, ch := range l.Changes {
		it := workItem(l)
		it.Part = ch.Path
		out.Link("", fmt.Sprintf("%-8s %s  +%d -%d", ch.Status, ch.Path, ch.Added, ch.Removed), screen.Text, it)
	}
}

// ranText says how commands ended, and what each printed last.
func ranText(env *pane.Env, all []tree.Ran, out *pane.Paras) {
	for _, r := range all {
		mark, role := screen.Succeeded, screen.Good
		if r.Code != 0 {
			mark, role = screen.Failure, screen.Bad
		}
		out.Add("", fmt.Sprintf("%s %s  exit %d, %d ms", mark.Glyph(env.Glyphs), line(r.Command), r.Code, r.TookMS), role)
		out.Add("", r.Tail, screen.Dim)
	}
}

// line is a command as it was written: a shell's line without the shell.
func line(command []string) string {
	return strings.Join(command[min(2, len(command)):], " ")
}
