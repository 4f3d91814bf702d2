package swarm

import (
	"context"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// SessionState is the seed's enum.
type SessionState string

// The session states. Stopped is final.
const (
	SessionCreated SessionState = "created"
	SessionRunning SessionState = "running"
	SessionPaused  SessionState = "paused"
	SessionStopped SessionState = "stopped"
)

// Session is a time-bounded operating context (seed 1, SwarmSession).
type Session struct {
	SessionID string       `json:"session_id"`
	Name      string       `json:"name,omitempty"` // label, unique among live sessions
	TenantID  string       `json:"tenant_id"`
	State     SessionState `json:"state"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
	Reason    string       `json:"reason,omitempty"`
	// Pausing lists the tasks that have not acknowledged a pause yet; the
	// session shows "pausing" until it is empty. Not stored.
	Pausing  []string `json:"pausing,omitempty"`
	AuditSeq uint64   `json:"audit_seq,omitzero"`
}

// Shown is the state in an operator's words: "pausing" until every running
// task has acknowledged.
func (s *Session) Shown() string {
	if s.State == SessionPaused && len(s.Pausing) > 0 {
		return "pausing"
	}
	return string(s.State)
}

func (s *Session) state() core.Raw {
	return core.MustEncode(map[string]string{"state": string(s.State)})
}

var namePattern = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// sessionMoves are the allowed transitions (contract 1.2).
var sessionMoves = map[SessionState][]SessionState{
	SessionRunning: {SessionCreated, SessionPaused},
	SessionPaused:  {SessionRunning},
	SessionStopped: {SessionCreated, SessionRunning, SessionPaused},
}

// CheckName reports a name that no session may have; "" is none.
func CheckName(name string) error {
	if _, _, _, id := core.ParseID(name); name != "" && (id || !namePattern().MatchString(name)) {
		return core.Invalid("name", name, "a letter or digit, then at most 62 of A-Z a-z 0-9 . _ -, not like an id")
	}
	return nil
}

// CreateSession adds a session in state created. name is a label, "" for none.
func (s *Swarm) CreateSession(ctx context.Context, by core.Caller, name string) (Session, error) {
	if err := CheckName(name); err != nil {
		return Session{}, err
	}
	var made Session
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		seq := uint64(tx.Add(countSessions, 1))
		if err := takeName(tx, name, core.NewID(core.SessionPrefix, by.Tenant, seq)); err != nil {
			return err
		}
		made = Session{
			SessionID: core.NewID(core.SessionPrefix, by.Tenant, seq), Name: name, TenantID: by.Tenant,
			State: SessionCreated, CreatedAt: tx.Now(),
		}
		return s.putSession(tx, &made, "session.created")
	})
	return made, err
}

// takeName keeps the names of live sessions unique.
func takeName(tx *audit.Tx, name, id string) error {
	if name == "" {
		return nil
	}
	old, err := tx.Get(bNames, []byte(name))
	if err != nil {
		return err
	}
	if old != nil {
		return core.Errorf(core.Conflict, "session %q exists already as %s", name, old).With("field", "name")
	}
	return tx.Put(bNames, []byte(name), []byte(id))
}

// StartSession lets a created session's tasks run.
func (s *Swarm) StartSession(ctx context.Context, by core.Caller, id string) (Session, error) {
	return s.moveSession(ctx, by, id, "start", SessionRunning, "")
}

// ResumeSession continues a paused session.
func (s *Swarm) ResumeSession(ctx context.Context, by core.Caller, id string) (Session, error) {
	return s.moveSession(ctx, by, id, "resume", SessionRunning, "")
}

// PauseSession stops claiming the session's tasks and stops its running work.
// It returns at once; Pausing lists what has not acknowledged.
func (s *Swarm) PauseSession(ctx context.Context, by core.Caller, id, reason string) (Session, error) {
	return s.moveSession(ctx, by, id, "pause", SessionPaused, reason)
}

func (s *Swarm) moveSession(ctx context.Context, by core.Caller, id, verb string, to SessionState, reason string) (Session, error) {
	id, seq, err := s.sessionSeq(ctx, by, id)
	if err != nil {
		return Session{}, err
	}
	var ses Session
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := load(tx, bSession, key8(seq), "session", id, &ses); err != nil {
			return err
		}
		from := ses.State
		if verb == "start" && from == SessionPaused || verb == "resume" && from == SessionCreated || !contains(sessionMoves[to], from) {
			return core.Errorf(core.Conflict, "session %s is %s: can't %s it", id, from, verb).With("field", "state").With("value", string(from))
		}
		ses.State, ses.Reason = to, cut(reason, 1000)
		event := map[SessionState]string{SessionRunning: "session.running", SessionPaused: "session.paused", SessionStopped: "session.stopped"}[to]
		if to == SessionStopped {
			if err := s.markStopped(tx, &ses); err != nil {
				return err
			}
		}
		return s.putSession(tx, &ses, event)
	})
	if err != nil {
		return Session{}, err
	}
	ses.Pausing = s.unpaused(by.Tenant, ses.SessionID)
	return ses, nil
}

func (s *Swarm) putSession(tx *audit.Tx, ses *Session, event string) error {
	_, _, seq, _ := core.ParseID(ses.SessionID)
	ses.UpdatedAt = tx.Now()
	n, err := tx.Record(audit.Entry{
		Type: event, Subject: "session", ID: ses.SessionID, State: ses.state(), Prev: ses.AuditSeq,
		Detail: core.MustEncode(map[string]string{"name": ses.Name, "reason": ses.Reason}),
	})
	if err != nil {
		return err
	}
	ses.AuditSeq = n
	ses.Pausing = nil
	if err := tx.Put(bSession, key8(seq), core.MustEncode(ses)); err != nil {
		return err
	}
	c := *ses
	tx.Changed("session", ses.SessionID, &c)
	tx.OnCommit(func() { s.sessionChanged(&c) })
	return nil
}

// Session returns one session, by id or by the name of a live one.
func (s *Swarm) Session(ctx context.Context, tenant, id string) (Session, error) {
	id, seq, err := s.sessionSeq(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return Session{}, err
	}
	var ses Session
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return load(tx, bSession, key8(seq), "session", id, &ses)
	})
	ses.Pausing = s.unpaused(tenant, id)
	return ses, err
}

// Sessions lists sessions, newest first; f.Status filters by state.
func (s *Swarm) Sessions(ctx context.Context, tenant string, f core.Filter) (core.Page[Session], error) {
	if f.Status != "" && !contains([]SessionState{SessionCreated, SessionRunning, SessionPaused, SessionStopped}, SessionState(f.Status)) {
		return core.Page[Session]{}, core.Invalid("status", f.Status, "created, running, paused or stopped")
	}
	page, err := listRecords(ctx, s, tenant, bSession, f, func(r *Session) bool {
		return matches(f, string(r.State), "", "", r.SessionID, "", r.CreatedAt, r.SessionID, r.Name, r.Reason)
	})
	for i := range page.Items {
		page.Items[i].Pausing = s.unpaused(tenant, page.Items[i].SessionID)
	}
	return page, err
}

// sessionSeq resolves an id, or a live session's name.
func (s *Swarm) sessionSeq(ctx context.Context, by core.Caller, id string) (string, uint64, error) {
	if _, _, _, ok := core.ParseID(id); !ok {
		if real, ok := s.sessionNamed(by.Tenant, id); ok {
			id = real
		} else if namePattern().MatchString(id) {
			return id, 0, core.Missing("session", id)
		}
	}
	seq, err := s.local(ctx, by, core.SessionPrefix, id)
	return id, seq, err
}

// LiveSessions are the sessions that are not stopped, newest first.
func (s *Swarm) LiveSessions(ctx context.Context, tenant string) ([]*Session, error) {
	s.mu.Lock()
	ids := make([]string, 0, 8)
	for id := range s.world(tenant).sessions {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	slices.Sort(ids)
	slices.Reverse(ids)
	out := make([]*Session, 0, len(ids))
	for _, id := range ids {
		ses, err := s.Session(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		out = append(out, &ses)
	}
	return out, nil
}
