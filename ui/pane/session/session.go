// Package session is the sheet of one session: its state, budget and agents.
package session

import (
	"strings"

	"swarmdeck/engine/session"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/sessions"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "session"

// agentsShown is how many of its agents the sheet lists.
const agentsShown = 50

// Pane shows a session.
type Pane struct{ *pane.Detail[session.Session] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[session.Session]{
		Name: Name, Fetch: pane.World.Session, Text: text, Item: sessions.Item, Live: true,
	})}
}

func text(env pane.Env, s *session.Session, out *pane.Paras) {
	st := pane.SessionState(s)
	out.Add("session", s.SessionID, screen.Accent)
	out.Add("name", s.Name, screen.Text)
	out.Add("state", st.Label(env.Glyphs), st.Role())
	out.Add("reason", s.Reason, screen.Text)
	out.Add("created", pane.When(env.Now, s.CreatedAt), screen.Text)
	out.Add("changed", pane.When(env.Now, s.UpdatedAt), screen.Text)
	if len(s.Pausing) > 0 {
		out.Add("not paused", strings.Join(s.Pausing, "\n"), screen.Warn)
	}
	for _, b := range env.Snap.Budgets {
		if b.Subject == "session:"+s.SessionID {
			out.Head("budget")
			out.Add("", pane.BudgetText(b), screen.Text)
		}
	}
	out.Head("agents")
	n := 0
	for _, a := range env.Snap.Agents {
		if a.SessionID == s.SessionID && n < agentsShown {
			st := pane.AgentState(&env, a)
			out.Link("", st.Label(env.Glyphs)+" "+a.Name, st.Role(), pane.Item{Kind: "agent", ID: a.Name})
			n++
		}
	}
	if n == 0 {
		out.Add("", "none", screen.Dim)
	}
}
