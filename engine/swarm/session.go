package swarm

import (
	"context"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
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

func (s *Swarm) sessionKind() record.Kind[Session] {
	return record.Kind[Session]{
		Noun: "session", Bucket: bSession, Ledger: s.ledger, Follow: s.sessionChanged,
		ID:  func(ses *Session) string { return ses.SessionID },
		Key: record.Numbered(core.SessionPrefix), Name: record.NumberedName(core.SessionPrefix),
		Head: func(ses *Session) record.Head {
			return record.Head{Tenant: &ses.TenantID, Created: &ses.CreatedAt, Updated: &ses.UpdatedAt, Seq: &ses.AuditSeq}
		},
		State: func(ses *Session) any { return map[string]SessionState{"state": ses.State} },
		Indexes: []record.Index[Session]{{Bucket: bNames, Keys: func(ses *Session) []record.Key {
			if ses.Name == "" || ses.State == SessionStopped {
				return nil
			}
			return []record.Key{record.Key(ses.Name)}
		}}},
	}
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
		if err := freeName(tx, name); err != nil {
			return err
		}
		made = Session{SessionID: core.NewID(core.SessionPrefix, by.Tenant, s.sessions.Next(tx)), Name: name, State: SessionCreated}
		return s.putSession(tx, nil, &made, "session.created")
	})
	return made, err
}

// freeName keeps the names of live sessions unique.
func freeName(tx *audit.Tx, name string) error {
	if name == "" {
		return nil
	}
	old, err := tx.Get(bNames, []byte(name))
	if err == nil && old != nil {
		err = core.Errorf(core.Conflict, "session %q exists already as %s", name, old).With("field", "name")
	}
	return err
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
	return s.moveSession(store.IfFull(ctx, store.UseReserve), by, id, "pause", SessionPaused, reason)
}

func (s *Swarm) moveSession(ctx context.Context, by core.Caller, id, verb string, to SessionState, reason string) (Session, error) {
	id, err := s.sessionID(ctx, by, id)
	if err != nil {
		return Session{}, err
	}
	var ses Session
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.sessions.Need(tx, id)
		if err != nil {
			return err
		}
		from := old.State
		ses = *old
		if verb == "start" && from == SessionPaused || verb == "resume" && from == SessionCreated || !slices.Contains(sessionMoves[to], from) {
			return core.Errorf(core.Conflict, "session %s is %s: can't %s it", id, from, verb).With("field", "state").With("value", string(from))
		}
		ses.State, ses.Reason = to, core.Cut(reason, 1000)
		event := map[SessionState]string{SessionRunning: "session.running", SessionPaused: "session.paused", SessionStopped: "session.stopped"}[to]
		if to == SessionStopped {
			if err := s.markStopped(tx, &ses); err != nil {
				return err
			}
		}
		return s.putSession(tx, old, &ses, event)
	})
	if err != nil {
		return Session{}, err
	}
	ses.Pausing = s.unpaused(by.Tenant, ses.SessionID)
	return ses, nil
}

func (s *Swarm) putSession(tx *audit.Tx, old, ses *Session, event string) error {
	ses.Pausing = nil
	return s.sessions.Save(tx, record.Event{Type: event, Detail: map[string]string{"name": ses.Name, "reason": ses.Reason}}, old, ses)
}

// Session returns one session, by id or by the name of a live one.
func (s *Swarm) Session(ctx context.Context, tenant, id string) (Session, error) {
	id, err := s.sessionID(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return Session{}, err
	}
	ses, err := s.sessions.Get(ctx, tenant, id)
	ses.Pausing = s.unpaused(tenant, id)
	return ses, err
}

// Sessions lists sessions, newest first; f.Status filters by state.
func (s *Swarm) Sessions(ctx context.Context, tenant string, f core.Filter) (core.Page[Session], error) {
	if f.Status != "" && !slices.Contains([]SessionState{SessionCreated, SessionRunning, SessionPaused, SessionStopped}, SessionState(f.Status)) {
		return core.Page[Session]{}, core.Invalid("status", f.Status, "created, running, paused or stopped")
	}
	f, err := f.Check()
	if err != nil {
		return core.Page[Session]{}, err
	}
	var found []Session
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return s.sessions.Each(tx, func(ses *Session) error {
			if ses.matches(f) {
				found = append(found, *ses)
			}
			return nil
		})
	})
	if len(core.DamagedIn(err)) > 0 {
		s.opt.Health.Report(tenant, component, "", err)
		err = nil
	}
	slices.Reverse(found)
	items := found[min(f.Offset(), len(found)):]
	items = items[:min(f.Size, len(items))]
	for i := range items {
		items[i].Pausing = s.unpaused(tenant, items[i].SessionID)
	}
	return core.NewPage(items, f, len(found)), err
}

func (s *Session) matches(f core.Filter) bool {
	return (f.Status == "" || f.Status == string(s.State)) && (f.Session == "" || f.Session == s.SessionID) &&
		f.Agent == "" && f.Kind == "" && f.Trace == "" && f.Within(s.CreatedAt) && f.Finds(s.SessionID, s.Name, s.Reason)
}

// sessionID resolves an id, or a live session's name.
func (s *Swarm) sessionID(ctx context.Context, by core.Caller, id string) (string, error) {
	if _, _, _, ok := core.ParseID(id); !ok {
		if real, ok := s.SessionNamed(by.Tenant, id); ok {
			id = real
		} else if namePattern().MatchString(id) {
			return id, core.Missing("session", id)
		}
	}
	_, err := s.ledger.LocalSeq(ctx, by, core.SessionPrefix, id)
	return id, err
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
		if len(core.DamagedIn(err)) > 0 {
			s.opt.Health.Report(tenant, component, "", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, &ses)
	}
	return out, nil
}
