package fleet

import (
	"context"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/session"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Sessions are what the panes read of sessions; *session.Sessions has it.
type Sessions interface {
	Get(ctx context.Context, tenant, id string) (session.Session, error)
	List(ctx context.Context, tenant string, f core.Filter) (core.Page[session.Session], error)
}

// agentsShown is how many of its agents the sheet lists.
const agentsShown = 50

// NewSession makes the sheet of one session: its state, budget and agents.
func NewSession(of Sessions) *pane.Detail[session.Session] {
	return pane.NewDetail(pane.DetailSpec[session.Session]{
		Name: "session", Fetch: of.Get, Text: sessionText, Item: sessionItem, Live: true,
		State: func(_ *pane.Env, s *session.Session) pane.State { return pane.SessionState(s) },
	})
}

func sessionText(env pane.Env, s *session.Session, out *pane.Paras) {
	out.Fields(&env, s, "session:session_id,accent name reason created:created_at changed:updated_at")
	out.Add("not paused", strings.Join(s.Pausing, "\n"), screen.Warn)
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

// NewSessions makes the pane of a tenant's sessions: start, pause, resume and
// stop them.
func NewSessions(of Sessions) *pane.Table[session.Session] {
	return pane.NewTable(pane.Spec[session.Session]{
		Name: "sessions", Title: "sessions", Empty: "no sessions: press + to make one",
		Face: face.For[session.Session](),
		Cells: map[string]pane.Cell[session.Session]{
			"STATE": pane.StateCell(pane.SessionState),
			"ACKS": func(env *pane.Env, s *session.Session) (string, screen.Role) {
				if n := len(s.Pausing); n > 0 {
					return strconv.Itoa(n) + " to go", screen.Warn
				}
				return "", screen.Text
			},
		},
		Item:  sessionItem,
		Fetch: of.List,
	})
}

// sessionItem is a session as a thing under the cursor.
func sessionItem(s *session.Session) pane.Item {
	return pane.Item{Kind: "session", ID: s.SessionID, Session: s.SessionID, Paused: s.State == session.Paused}
}
