package serve

import (
	"cmp"
	"time"
)

// Limits are what clients may take. Those but Sessions are for who comes over
// SSH. 0 is the default of each.
type Limits struct {
	// Sessions at once, of everyone; who wants one more is told so and exits
	// with 75. An attached cockpit takes some MB. Default 256.
	Sessions int `json:"max-sessions" allow:"1-100000"`
	// PerKey is the same for one key, so that nobody keeps the others out. It
	// may have as many connections and 8 more, for those that are about to
	// begin or end; one more is told so. Default 32.
	PerKey int `json:"max-sessions-per-key" allow:"1-100000"`
	// Connections at once, of everyone; one more is told so and closed before
	// it costs a key exchange. Default 512.
	Connections int
	// PerAddress is the same for one address, or one /64 of IPv6. Those behind
	// one gateway share it. Default 128.
	PerAddress int `json:"max-connections-per-address" allow:"1-100000"`
	// Failures a minute of one address after which it is turned away unheard,
	// until a minute has brought as many again: connections that proved no key
	// and began no session. Default 60.
	Failures int `json:"max-failures-per-minute" allow:"1-100000"`
	// Idle is how long a terminal's session may be without a key; then it is
	// closed. 0 is for ever: some watch only.
	Idle time.Duration `allow:"none or 1s-8760h"`
	// Stall is how long a client may leave its output unread; then its
	// connection is closed, so that nothing waits for it. A
	// pager at the other end may be such a client. Default 15 minutes.
	Stall time.Duration `allow:"1s or more"`
}

func (l Limits) filled() Limits {
	l.Sessions = cmp.Or(l.Sessions, 256)
	l.PerKey = cmp.Or(l.PerKey, 32)
	l.Connections = cmp.Or(l.Connections, 512)
	l.PerAddress = cmp.Or(l.PerAddress, 128)
	l.Failures = cmp.Or(l.Failures, 60)
	l.Stall = cmp.Or(l.Stall, 15*time.Minute)
	return l
}

// Limits that need no choice, as sshd has them.
const (
	spare      = 8                // connections of one key beyond its sessions
	maxPending = 128              // connections that have begun no session
	maxTries   = 6                // keys that one may offer
	greeting   = 10 * time.Second // from the first byte to the first known key
	proof      = time.Minute      // to the proof of it: a person may have to type a passphrase
	lull       = 10 * time.Minute // of a connection whose sessions have all ended
	keepalive  = 30 * time.Second
	silence    = 3 // keepalives without an answer after which a connection is dead
)

// What a session ends with because of something other than its client.
const (
	errStalled closing = "the output was not read for too long"
	errLeave   closing = "what your key opens was changed: connect again"
)

// crowded is told to who has too many connections already.
type crowded string

func (c crowded) Error() string { return string(c) }

// closing is an end that the client is told of.
type closing string

func (c closing) Error() string { return string(c) }
