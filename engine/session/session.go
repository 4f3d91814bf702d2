// Package session keeps the sessions of each tenant: time-bounded contexts in
// which tasks run, with their states, names and ends.
//
// A session says whether its tasks may run; it knows no task. Who runs them
// follows State, and cancels what a stopped session still holds.
//
// Lock order: nothing is called with Sessions.mu held, so State and Named may
// be asked under any lock.
package session

import (
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// State is what a session is in.
type State string

// The session states. Stopped is final.
const (
	Created State = "created"
	Running State = "running"
	Paused  State = "paused"
	Stopped State = "stopped"
)

var states = []State{Created, Running, Paused, Stopped}

// moves are the states that one may follow.
var moves = map[State][]State{
	Running: {Created, Paused},
	Paused:  {Running},
	Stopped: {Created, Running, Paused},
}

// Session is a time-bounded operating context.
type Session struct {
	SessionID string    `json:"session_id"`
	Name      string    `json:"name,omitempty"` // label, unique among live sessions
	TenantID  string    `json:"tenant_id"`
	State     State     `json:"state"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Reason    string    `json:"reason,omitempty"`
	// Pausing lists the tasks that have not acknowledged a pause yet; the
	// session shows "pausing" until it is empty. Not stored.
	Pausing  []string `json:"pausing,omitempty"`
	AuditSeq uint64   `json:"audit_seq,omitzero"`
}

// Shown is the state in an operator's words: "pausing" until every running
// task has acknowledged.
func (s *Session) Shown() string {
	if s.State == Paused && len(s.Pausing) > 0 {
		return "pausing"
	}
	return string(s.State)
}

// whyStopped is what the tasks that a stop cancels say.
func (s *Session) whyStopped() string {
	if s.Reason == "" {
		return "session stopped"
	}
	return "session stopped: " + s.Reason
}

func (s *Session) matches(f core.Filter) bool {
	return core.Wants(f.Status, string(s.State)) && (f.Session == "" || f.Session == s.SessionID) &&
		f.Agent == "" && f.Kind == "" && f.Trace == "" && f.Within(s.CreatedAt) && f.Finds(s.SessionID, s.Name, s.Reason, s.Shown())
}

var namePattern = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// CheckName reports a name that no session may have; "" is none.
func CheckName(name string) error {
	if _, _, _, id := core.ParseID(name); name != "" && (id || !namePattern().MatchString(name)) {
		return core.Invalid("name", name, "a letter or digit, then at most 62 of A-Z a-z 0-9 . _ -, not like an id")
	}
	return nil
}

const (
	names      record.Rows[string] = "session.name"     // name of a live session → its id
	unfinished record.Rows[string] = "session.stopping" // number of a stopped session that still holds tasks → why
)

func (s *Sessions) declared() record.Table[Session] {
	return &record.Kind[*Session]{
		Noun: "session", Bucket: "session", Ledger: s.opt.Ledger, Follow: s.follow,
		ID:     func(ses *Session) string { return ses.SessionID },
		Number: record.Numbers(core.SessionPrefix), Name: record.NumberedName(core.SessionPrefix),
		Says: "state", Fits: (*Session).matches, Statuses: core.Strings(states...),
		Indexes: []record.Index[*Session]{{Bucket: store.Bucket(names), Keys: func(ses *Session) []record.Key {
			if ses.Name == "" || ses.State == Stopped {
				return nil
			}
			return []record.Key{record.Key(ses.Name)}
		}}},
	}
}

// put keeps a session in place of old, which is nil for a new one.
func (s *Sessions) put(tx *audit.Tx, old, ses *Session) error {
	ses.Pausing = nil
	return s.kind.Save(tx, record.Event{
		Type: "session." + string(ses.State), Detail: map[string]string{"name": ses.Name, "reason": ses.Reason},
	}, old, ses)
}

// freeName keeps the names of live sessions unique.
func freeName(tx *audit.Tx, name string) error {
	if name == "" {
		return nil
	}
	old, there, err := names.Get(tx, record.Key(name))
	if err == nil && there {
		err = core.Errorf(core.Conflict, "session %q exists already as %s", name, old).With("field", "name")
	}
	return err
}

// follows reports whether a session may go from one state to another by a verb.
func follows(verb string, from, to State) bool {
	return !(verb == "start" && from == Paused || verb == "resume" && from == Created) && slices.Contains(moves[to], from)
}
