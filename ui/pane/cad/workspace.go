package cad

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

const workspaceName = "workspace"

// Bounds of what the sheet lists.
const (
	entitiesShown   = 100
	operationsShown = 100
)

// Workspace shows one workspace, with a picture below where there is room.
type Workspace struct {
	*pane.Detail[wholeWorkspace]
	picture *Solid
	w, h    int
	solids  int
}

// pictured is the height from which there is room for the picture.
const pictured = 28

// wholeWorkspace is a workspace with its content.
type wholeWorkspace struct {
	cad.Workspace
	bodies   core.Page[model.Entity] // its solids
	entities core.Page[model.Entity] // all
	journal  core.Page[model.Entry]
	open     []model.Conflict
}

// NewWorkspace makes the sheet of one workspace: its solids, what is in
// conflict, and the operations that led there, the newest first.
func NewWorkspace(of CAD) *Workspace {
	p := &Workspace{picture: solidWithin(of, workspaceName)}
	p.Detail = pane.NewDetail(pane.DetailSpec[wholeWorkspace]{
		Name: workspaceName, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (g wholeWorkspace, err error) {
			if g.Workspace, err = of.Workspace(ctx, tenant, id); err != nil {
				return g, err
			}
			if g.bodies, err = of.Entities(ctx, tenant, id, core.Filter{Kind: string(model.Solid), Page: 1, Size: entitiesShown}); err != nil {
				return g, err
			}
			if g.entities, err = of.Entities(ctx, tenant, id, core.Filter{Page: 1, Size: entitiesShown}); err != nil {
				return g, err
			}
			if g.open, err = of.Conflicts(ctx, tenant, id); err != nil {
				return g, err
			}
			g.journal, err = of.History(ctx, tenant, id, core.Filter{Page: 1, Size: operationsShown})
			return g, err
		},
		Text: func(env pane.Env, g *wholeWorkspace, out *pane.Paras) {
			p.solids = g.SolidCount
			workspaceText(env, g, out)
		},
		Item:  func(g *wholeWorkspace) pane.Item { return workspaceItem(&g.Workspace) },
		Title: func(g *wholeWorkspace) string { return "workspace " + g.WorkspaceID },
	})
	return p
}

func (p *Workspace) Show(env pane.Env, it pane.Item) tea.Cmd {
	if it.ID != p.Item().ID {
		p.solids = 0
	}
	return tea.Batch(p.Detail.Show(env, it), p.picture.Show(env, pane.PictureOf(it.ID, "")))
}

func (p *Workspace) Reset() {
	p.Detail.Reset()
	p.picture.Reset()
}

func (p *Workspace) Refresh(env pane.Env) tea.Cmd {
	cmd := p.Detail.Refresh(env)
	if p.split() == p.h {
		return cmd
	}
	return tea.Batch(cmd, p.picture.Refresh(env))
}

func (p *Workspace) Update(env pane.Env, body any) tea.Cmd {
	before := p.split()
	cmds := []tea.Cmd{p.Detail.Update(env, body), p.picture.Update(env, body)}
	if now := p.split(); now != before {
		p.Resize(p.w, p.h)
		if now < p.h {
			cmds = append(cmds, p.picture.Refresh(env))
		}
	}
	return tea.Batch(cmds...)
}

// split is how many rows the text has; the picture gets the rest.
func (p *Workspace) split() int {
	if p.h < pictured || p.solids == 0 {
		return p.h
	}
	return p.h / 2
}

func (p *Workspace) Resize(w, h int) {
	p.w, p.h = w, h
	p.Detail.Resize(w, p.split())
	p.picture.Resize(w, h-p.split())
}

func (p *Workspace) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	text, picture := c.Bounds().SplitTop(p.split())
	p.Detail.Draw(c.Sub(text), env, focused)
	if picture.H < 2 {
		return
	}
	head, picture := picture.SplitTop(1)
	c.HLine(head.X, head.Y, head.W, screen.Border)
	c.Text(1, head.Y, screen.Title, " solids ")
	p.picture.Draw(c.Sub(picture), env, false)
}

// Selected implements pane.Pane: the workspace, with the entity under the
// cursor as its part.
func (p *Workspace) Selected(env pane.Env) pane.Item {
	it := p.Detail.Selected(env)
	it.Part = p.Open(env).Part
	return it
}

func (p *Workspace) Picture(env pane.Env) pane.Item {
	if it := p.Open(env); it.Kind == "solid" {
		return it
	}
	return pane.PictureOf(p.Selected(env).Workspace, "")
}

func workspaceText(env pane.Env, g *wholeWorkspace, out *pane.Paras) {
	w := &g.Workspace
	if w.Name != w.WorkspaceID {
		out.Add("name", w.Name, screen.Title)
	}
	out.Fields(&env, w, "base:base_workspace_id,opens=workspace agent:agent_id,opens=cad-agent")
	out.Add("has", fmt.Sprintf("%d solids, %d entities, %d operations", w.SolidCount, w.EntityCount, w.Seq), screen.Text)
	out.Fields(&env, w, "kernel files:directory,dim changed:updated_at,dim")
	if len(g.open) > 0 {
		out.Head(fmt.Sprintf("conflicts (%d)", len(g.open)))
		for i := range g.open {
			c := &g.open[i]
			out.Link(conflictWhy(c), c.EntityID+" from "+c.Source+": "+c.Description, screen.Warn, conflictItem(c))
		}
	}
	if w.SolidCount > 0 {
		out.Link("picture", "see the solids from any side", screen.Accent, pane.PictureOf(w.WorkspaceID, ""))
	}
	out.Head(fmt.Sprintf("entities (%d)", w.EntityCount))
	out.Rows("", entities(g))
	out.Head(fmt.Sprintf("operations, newest first (%d)", g.journal.Info.Total))
	out.Rows("", operations(env, g))
}

// entities are lines of what the workspace has, its solids first; a solid opens
// as a picture.
func entities(g *wholeWorkspace) (rows []pane.Row) {
	for i := range g.bodies.Items {
		e := &g.bodies.Items[i]
		row := entityLine(e)
		row.Role, row.Item = screen.Accent, pane.PictureOf(g.WorkspaceID, e.ID)
		if f, err := model.FactsOf(*e); err != nil {
			row.Note, row.Role = " "+err.Error(), screen.Bad
		} else {
			row.Note = fmt.Sprintf(" %s, %s mm3, %s", solid.Extent(f.Bounds.Size()), solid.Number(f.Volume), f.Validity())
		}
		rows = append(rows, row)
	}
	for i := range g.entities.Items {
		if e := &g.entities.Items[i]; e.Type != model.Solid {
			rows = append(rows, entityLine(e))
		}
	}
	if n := g.EntityCount - len(rows); n > 0 {
		rows = append(rows, pane.Row{Text: fmt.Sprintf("%d more: cad workspace entities %s", n, g.WorkspaceID), Role: screen.Dim})
	}
	return rows
}

func entityLine(e *model.Entity) pane.Row {
	return pane.Row{
		Text: fmt.Sprintf("%-10s %s", e.Type, e.ID), Role: screen.Text,
		Item: pane.Item{Kind: "entity", ID: e.ID, Workspace: e.WorkspaceID, Part: e.ID},
	}
}

// operations are lines of the operations: what each put and removed below it, and
// which are taken back.
func operations(env pane.Env, g *wholeWorkspace) (rows []pane.Row) {
	gone := undone(g.journal.Items)
	for i := range g.journal.Items {
		e := &g.journal.Items[i]
		role, note := screen.Text, ""
		switch {
		case e.Undoes > 0:
			role, note = screen.Dim, fmt.Sprintf(" takes back %d", e.Undoes)
		case e.Redoes > 0:
			role, note = screen.Dim, fmt.Sprintf(" brings back %d", e.Redoes)
		case gone[e.Seq]:
			role, note = screen.Dim, " taken back"
		}
		text := fmt.Sprintf("%4d %s", e.Seq, e.Method)
		if e.AgentID != "" {
			text += " by " + e.AgentID
		}
		rows = append(rows, pane.Row{Text: text, Role: role, Note: note})
		if what := changed(env, e); what != "" && role == screen.Text {
			rows = append(rows, pane.Row{Lead: "     " + string(env.Glyphs.LastBranch) + string(env.Glyphs.Horizontal) + " ", Text: what, Role: screen.Dim})
		}
	}
	return rows
}

// undone are the seqs that are taken back at the newest entry: undoing and
// bringing back are told newest first.
func undone(entries []model.Entry) map[int]bool {
	gone, settled := map[int]bool{}, map[int]bool{}
	for _, e := range entries {
		of := e.Undoes + e.Redoes
		if of > 0 && !settled[of] {
			settled[of], gone[of] = true, e.Undoes > 0
		}
	}
	return gone
}

// changed is what an operation put and removed, in a line.
func changed(env pane.Env, e *model.Entry) string {
	var words []string
	for i, p := range e.Put {
		if i == 8 {
			words = append(words, fmt.Sprintf("%c %d more", env.Glyphs.More, len(e.Put)-i))
			break
		}
		words = append(words, "+"+p.ID)
	}
	for _, id := range e.Removed {
		words = append(words, "-"+id)
	}
	if n := len(e.Conflicts); n > 0 {
		words = append(words, fmt.Sprintf("%d conflicts", n))
	}
	return strings.Join(words, " ")
}

// NewWorkspaces makes the pane of what CAD agents build in.
func NewWorkspaces(of CAD) *pane.Table[cad.Workspace] {
	return pane.NewTable(pane.Spec[cad.Workspace]{
		Name: "workspaces", Title: "workspaces", Empty: "no workspaces: press + to make one",
		Face: face.For[cad.Workspace](),
		Cells: map[string]pane.Cell[cad.Workspace]{
			"CONFLICTS": func(env *pane.Env, w *cad.Workspace) (string, screen.Role) {
				if w.Conflicts == 0 {
					return "", screen.Dim
				}
				return fmt.Sprint(w.Conflicts), screen.Warn
			},
		},
		Item:  workspaceItem,
		Fetch: of.Workspaces,
	})
}

// workspaceItem is a workspace as a thing under the cursor.
func workspaceItem(w *cad.Workspace) pane.Item {
	return pane.Item{Kind: "workspace", ID: w.WorkspaceID, Agent: w.AgentID, Workspace: w.WorkspaceID}
}
