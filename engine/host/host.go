// Package host knows the other machines on which agents run: how each is
// reached, how many agents it takes, and how its link is now. What a link is, and
// what runs at its end, is the driver's.
package host

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Host is a machine on which agents run.
type Host struct {
	TenantID  string            `json:"tenant_id"`
	Name      string            `json:"name" allow:"1-40 of a-z 0-9 -, beginning with a letter or digit"`
	Address   string            `json:"address,omitempty"` // ssh://[USER@]HOST[:PORT]
	Command   []string          `json:"command,omitempty"` // in the place of ssh: reaches a shell there
	Labels    map[string]string `json:"labels,omitempty" allow:"at most 32"`
	Slots     int               `json:"slots" allow:"1-1000 agents"` // that it takes
	LeaseS    int               `json:"lease_s" allow:"5s-1h"`       // that its agents go on without a link
	Draining  bool              `json:"draining,omitzero"`
	Removing  bool              `json:"removing,omitzero"`
	CreatedAt time.Time         `json:"created_at"`
	UpdatedAt time.Time         `json:"updated_at"`
	AuditSeq  uint64            `json:"audit_seq,omitzero"`
}

// Here stands in a Command for one word that a shell is to run; without it the
// words of what is to be run follow the command's.
const Here = "{}"

// Limits of a host.
const (
	DefaultSlots = 16
	DefaultLease = 60  // seconds
	maxHosts     = 200 // of a tenant
	maxLabels    = 32
	maxLabel     = 64 // bytes
)

// Check reports the first bad field and fills in the defaults.
func (h *Host) Check() error {
	h.Slots, h.LeaseS = cmp.Or(h.Slots, DefaultSlots), cmp.Or(h.LeaseS, DefaultLease)
	if err := bound.Check(h); err != nil {
		return err
	}
	if (h.Address == "") == (len(h.Command) == 0) {
		return core.Errorf(core.InvalidInput, "address: want either ssh://[USER@]HOST[:PORT] or --command").With("field", "address")
	}
	for _, k := range slices.Sorted(maps.Keys(h.Labels)) {
		if !label(k) || k == "" || !label(h.Labels[k]) {
			return core.Invalid("label", k+"="+h.Labels[k], fmt.Sprintf("a name and a value of at most %d printable bytes", maxLabel))
		}
	}
	if h.Address != "" {
		a, err := ParseAddress(h.Address)
		h.Address = a.String()
		return err
	}
	if h.Command[0] == Here {
		return core.Invalid("command", strings.Join(h.Command, " "), "a program, and what it does with "+Here)
	}
	return bound.Command("command", h.Command)
}

func label(s string) bool { return len(s) <= maxLabel && utf8.ValidString(s) && core.Printable(s) }

// Address is where ssh goes. An empty part is ssh's own to say.
type Address struct{ User, Host, Port string }

var (
	hostPattern = core.Pattern(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$|^[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,32})?$`)
	userPattern = core.Pattern(`^[A-Za-z_][A-Za-z0-9._@+-]{0,63}$`)
)

// ParseAddress reads ssh://[USER@]HOST[:PORT]. What it gives is no option of ssh.
func ParseAddress(s string) (a Address, err error) {
	bad := core.Invalid("address", s, "ssh://[USER@]HOST[:PORT]")
	u, err := url.Parse(s)
	if err != nil || len(s) > 400 || u.Scheme != "ssh" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return a, bad
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return a, core.Errorf(core.InvalidInput, "address: no password goes here: ssh uses keys").With("field", "address")
		}
		if a.User = u.User.Username(); !userPattern().MatchString(a.User) {
			return a, bad
		}
	}
	a.Host, a.Port = u.Hostname(), u.Port()
	if !hostPattern().MatchString(a.Host) {
		return a, bad
	}
	if n, err := strconv.Atoi(a.Port); a.Port != "" && (err != nil || n < 1 || n > 65535) {
		return a, bad
	}
	return a, nil
}

// String is the address as it is kept; "" of an empty one.
func (a Address) String() string {
	if a.Host == "" {
		return ""
	}
	u := url.URL{Scheme: "ssh", Host: a.Host}
	if strings.Contains(a.Host, ":") {
		u.Host = "[" + a.Host + "]"
	}
	if a.User != "" {
		u.User = url.User(a.User)
	}
	if a.Port != "" {
		u.Host += ":" + a.Port
	}
	return u.String()
}

// Way is how it is reached, for people.
func (h *Host) Way() string {
	if h.Address != "" {
		return h.Address
	}
	return strings.Join(h.Command, " ")
}

// sameWay says whether two hosts are the same machine.
func (h *Host) sameWay(o *Host) bool {
	return h.Address == o.Address && slices.Equal(h.Command, o.Command)
}

// Link is how the link to a host is.
type Link struct {
	State  string    `json:"state"` // one of the below
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	System string    `json:"system,omitempty"` // "linux/amd64", once known
	Lacks  []string  `json:"lacks,omitempty"`  // layers of the wall
	Runs   int       `json:"runs"`             // processes of agents that are thought to live there
}

// States of a link.
const (
	Unlinked   = "unlinked" // no engine runs that would keep it
	Connecting = "connecting"
	Copying    = "copying" // the program, which is not there yet
	Up         = "up"
	Away       = "away"    // it is lost; its agents go on until their lease ends
	Refused    = "refused" // it can't be had; tried again
	Leaving    = "removing"
)

// Status is a host with its link.
type Status struct {
	Host
	Link
	Agents []string `json:"agents,omitempty"`
}

// Word is the state as lists show it.
func (s Status) Word() string {
	if s.Draining && !s.Removing {
		return s.State + ", draining"
	}
	return s.State
}

// maxRemains is how many agents are named of those that remain on a host.
const maxRemains = 20

// Remains says what is on a host.
func (h Status) Remains() string {
	if len(h.Agents) == 0 {
		return "no agents are there"
	}
	who := strings.Join(h.Agents[:min(len(h.Agents), maxRemains)], ", ")
	if more := len(h.Agents) - maxRemains; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	said := fmt.Sprintf("%d agents have their place there: %s", len(h.Agents), who)
	if len(h.Agents) == 1 {
		said = "one agent has its place there: " + who
	}
	if h.State == Up || h.State == Away {
		said += fmt.Sprintf("; processes: %d", h.Runs)
	}
	return said
}
