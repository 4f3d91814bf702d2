// Package notice tells people who look at no screen what needs them: it reads
// the audit log from a place that is kept on disk, and sends what somebody
// asked for to a URL or a command, at least once, each message under an id
// that stays the same when it is sent again.
package notice

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Notice says what is told to whom.
type Notice struct {
	TenantID string `json:"tenant_id"`
	Name     string `json:"name" allow:"1-40 of a-z 0-9 -, beginning with a letter or digit"`
	// Events are words (approval, failure, budget, stuck, estop) or patterns
	// over the engine's events, such as sys.task.cancelled or sys.dag.>.
	Events []string `json:"events" allow:"1-20 words (approval, failure, budget, stuck, estop) or patterns such as sys.task.*"`
	// MinRisk leaves out approvals of a lower risk; "" leaves out none. What is
	// no approval has no risk and is told always.
	MinRisk judge.Risk `json:"min_risk,omitempty" allow:"none or low, medium, high, critical"`
	URL     string     `json:"url,omitempty"`     // http or https; this or Command
	Command []string   `json:"command,omitempty"` // gets the message as JSON on stdin
	// SecretEnv names the environment variable of the engine that holds the
	// secret by which messages to the URL are signed; "" signs none. The secret
	// itself is kept nowhere.
	SecretEnv string    `json:"secret_env,omitempty"`
	Rate      int       `json:"rate" allow:"1-600 messages a minute"` // what is more comes as one summary
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// Limits of a notice.
const (
	DefaultRate = 10
	maxURL      = 2048
	maxNotices  = 50 // of a tenant: each reads by itself
)

// words are the events that a word stands for.
var words = map[string][]string{
	"approval": {"approval.opened", "approval.escalated", "approval.expired"},
	"failure":  {"task.failed", "task.timed_out"},
	"budget":   {"budget.reached"},
	"stuck":    {"agent.stuck", "agent.attention", "agent.status"}, // of a status only what is trouble
	"estop":    {"estop.on", "estop.off"},
}

// Words lists the words that Events knows.
func Words() []string { return []string{"approval", "failure", "budget", "stuck", "estop"} }

var envPattern = core.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Check reports the first bad field and fills the default rate in.
func (n *Notice) Check() error {
	n.Rate = cmp.Or(n.Rate, DefaultRate)
	if err := bound.Check(n); err != nil {
		return err
	}
	for i, e := range n.Events {
		if slices.Contains(n.Events[:i], e) {
			return core.Invalid("events", e, "each once")
		}
		if _, err := patternOf(e); words[e] == nil && err != nil {
			return core.Invalid("events", e, strings.Join(Words(), ", ")+", or a pattern such as sys.task.*")
		}
	}
	return n.checkTarget()
}

func (n *Notice) checkTarget() error {
	switch {
	case (n.URL == "") == (len(n.Command) == 0):
		return core.Errorf(core.InvalidInput, "url or command: a notice has exactly one of them").With("field", "url")
	case n.SecretEnv != "" && n.URL == "":
		return core.Errorf(core.InvalidInput, "secret_env: only messages to a URL are signed").With("field", "secret_env")
	case n.SecretEnv != "" && !envPattern().MatchString(n.SecretEnv):
		// What was given may be the secret itself: it is not repeated.
		return core.Errorf(core.InvalidInput, "secret_env: want the name of an environment variable (letters, digits, _), never the secret").With("field", "secret_env")
	case n.URL == "":
		return bound.Command("command", n.Command)
	}
	u, err := url.Parse(n.URL)
	if err != nil || len(n.URL) > maxURL || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		return core.Invalid("url", n.URL, fmt.Sprintf("an http or https URL of at most %d bytes", maxURL))
	}
	if u.User != nil {
		return core.Errorf(core.InvalidInput, "url: it must not hold a user or password").With("field", "url")
	}
	return nil
}

func patternOf(text string) (bus.Pattern, error) {
	if !strings.HasPrefix(text, "sys.") {
		return bus.Pattern{}, core.Invalid("events", text, "a pattern that begins with sys.")
	}
	return bus.ParsePattern(text)
}
