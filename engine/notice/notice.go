// Package notice tells people who look at no screen what needs them: it reads
// the audit log from a place that is kept on disk, and sends what somebody
// asked for to a URL or a command, at least once, each message under an id
// that stays the same when it is sent again.
package notice

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Notice says what is told to whom.
type Notice struct {
	TenantID string `json:"tenant_id"`
	Name     string `json:"name"` // 1-40 of a-z 0-9 -
	// Events are words (approval, failure, budget, stuck, estop) or patterns
	// over the engine's events, such as sys.task.cancelled or sys.dag.>.
	Events []string `json:"events"`
	// MinRisk leaves out approvals of a lower risk; "" leaves out none. What is
	// no approval has no risk and is told always.
	MinRisk judge.Risk `json:"min_risk,omitempty"`
	URL     string     `json:"url,omitempty"`     // http or https; this or Command
	Command []string   `json:"command,omitempty"` // gets the message as JSON on stdin
	// SecretEnv names the environment variable of the engine that holds the
	// secret by which messages to the URL are signed; "" signs none. The secret
	// itself is kept nowhere.
	SecretEnv string    `json:"secret_env,omitempty"`
	Rate      int       `json:"rate"` // messages a minute, 1-600; what is more comes as one summary
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// Limits of a notice.
const (
	DefaultRate = 10
	maxRate     = 600
	maxEvents   = 20
	maxURL      = 2048
	maxWords    = 64
	maxWord     = 4096
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

var (
	namePattern = core.Pattern(`^[a-z0-9][a-z0-9-]{0,39}$`)
	envPattern  = core.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// Check reports the first bad field and fills the default rate in.
func (n *Notice) Check() error {
	if !namePattern().MatchString(n.Name) {
		return core.Invalid("name", n.Name, "1-40 of a-z 0-9 -, beginning with a letter or digit")
	}
	if len(n.Events) < 1 || len(n.Events) > maxEvents {
		return core.Invalid("events", len(n.Events), fmt.Sprintf("1-%d words (%s) or patterns such as sys.task.*", maxEvents, strings.Join(Words(), ", ")))
	}
	for i, e := range n.Events {
		if slices.Contains(n.Events[:i], e) {
			return core.Invalid("events", e, "each once")
		}
		if _, err := patternOf(e); words[e] == nil && err != nil {
			return core.Invalid("events", e, strings.Join(Words(), ", ")+", or a pattern such as sys.task.*")
		}
	}
	switch n.MinRisk {
	case "", judge.Low, judge.Medium, judge.High, judge.Critical:
	default:
		return core.Invalid("min_risk", string(n.MinRisk), "low, medium, high, critical")
	}
	if n.Rate == 0 {
		n.Rate = DefaultRate
	}
	if n.Rate < 1 || n.Rate > maxRate {
		return core.Invalid("rate", n.Rate, fmt.Sprintf("1-%d messages a minute", maxRate))
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
	case len(n.Command) > maxWords:
		return core.Invalid("command", len(n.Command), fmt.Sprintf("at most %d words", maxWords))
	}
	for i, w := range n.Command {
		if i == 0 && w == "" || len(w) > maxWord || strings.ContainsRune(w, 0) {
			return core.Invalid("command", w, fmt.Sprintf("a program and its arguments, each of at most %d bytes and without a zero byte", maxWord))
		}
	}
	if n.URL == "" {
		return nil
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
