// Package session is the sheet of one session.
package session

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/swarm"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "session"

// Pane shows a live session from the snapshot; of one that is over the list
// says what there is to say.
type Pane struct {
	pane.Record
}

// New makes the pane.
func New() *Pane { return &Pane{pane.NewRecord(Name)} }

// Show implements pane.Pane.
func (p *Pane) Show(env pane.Env, it pane.Item) tea.Cmd {
	p.Bind(it)
	return p.Refresh(env)
}

// Update implements pane.Pane.
func (p *Pane) Update(pane.Env, any) tea.Cmd { return nil }

// Refresh implements pane.Pane.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	id := p.Item().ID
	i := slices.IndexFunc(env.Snap.Sessions, func(s *swarm.Session) bool { return s.SessionID == id })
	var paras pane.Paras
	if i < 0 {
		paras.Add("session", id, screen.Accent)
		paras.Add("state", "stopped", screen.Dim)
		p.Page.Set(paras)
		return nil
	}
	s := env.Snap.Sessions[i]
	st := pane.SessionState(s)
	paras.Add("session", s.SessionID, screen.Accent)
	paras.Add("name", s.Name, screen.Text)
	paras.Add("state", st.Label(env.Glyphs), st.Role())
	paras.Add("reason", s.Reason, screen.Text)
	paras.Add("created", pane.When(env.Now, s.CreatedAt), screen.Text)
	paras.Add("changed", pane.When(env.Now, s.UpdatedAt), screen.Text)
	if len(s.Pausing) > 0 {
		paras.Add("not paused", strings.Join(s.Pausing, "\n"), screen.Warn)
	}
	for _, b := range env.Snap.Budgets {
		if b.Subject == "session:"+id {
			paras.Head("budget")
			paras.Add("", pane.BudgetText(b), screen.Text)
		}
	}
	paras.Head("agents")
	n := 0
	for _, a := range env.Snap.Agents {
		if a.SessionID == id && n < 50 {
			st := pane.AgentState(&env, a)
			paras.Add("", fmt.Sprintf("%s %s", st.Label(env.Glyphs), a.Name), st.Role())
			n++
		}
	}
	if n == 0 {
		paras.Add("", "none", screen.Dim)
	}
	p.Page.Set(paras)
	return nil
}
