package fleet

import (
	"time"

	"swarmdeck/engine/core"
)

// Trouble is why an agent can't work until somebody does something: one cause, which stands
// on its record until it works again. Its process is started again when something that the
// start depends on has changed, when somebody says so, or at NextAt.
type Trouble struct {
	Reason string    `json:"reason"` // with what to do about it
	Since  time.Time `json:"since"`
	Tries  int       `json:"tries"` // that failed in a row, since somebody said to try
	LastAt time.Time `json:"last_at"`
	NextAt time.Time `json:"next_at,omitzero"`
	// Prompted says that a prompt found it: that a process starts does not mend it.
	Prompted bool `json:"prompted,omitzero"`
}

// Resting reports whether it is not to be started yet.
func (t *Trouble) Resting(now time.Time) bool { return t != nil && now.Before(t.NextAt) }

func (t *Trouble) reason() string {
	if t == nil {
		return ""
	}
	return core.ClipTo(t.Reason, maxReason)
}

func (t *Trouble) same(o *Trouble) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Reason == o.Reason && t.Tries == o.Tries && t.Since.Equal(o.Since) && t.NextAt.Equal(o.NextAt)
}

// Needs is why the agent needs a person, "" when it doesn't. One that waits for an answer is
// listed as that approval.
func (a *Agent) Needs() string {
	switch {
	case a.Stuck != nil:
		return a.Stuck.Text
	case a.Attention != "":
		return a.Attention
	case a.Stopped:
		return ""
	case a.Trouble != nil:
		return a.Trouble.reason()
	case a.Status == Failed, a.Status == Offline:
		if a.Reason == "" {
			return string(a.Status)
		}
		return a.Reason
	}
	return ""
}
