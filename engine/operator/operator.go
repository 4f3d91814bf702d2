// Package operator keeps who the persons of a tenant are: by which users of the
// system and which public keys each is known, and in which role they enter from
// elsewhere. A process of this machine's own user needs no entry: whoever can
// open the data file rules it.
package operator

import (
	"crypto/ed25519"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Role is what an operator may do; each includes those before it.
type Role string

// The roles, least first.
const (
	Viewer   Role = "viewer"   // looks
	Works    Role = "operator" // dispatches, pauses, stops
	Approver Role = "approver" // answers approvals, sets budgets
	Admin    Role = "admin"    // makes tenants and operators, keeps the store
)

// Roles lists them.
func Roles() []Role { return []Role{Viewer, Works, Approver, Admin} }

// Limits of one operator.
const (
	MaxKeys    = 20
	MaxUsers   = 8
	MaxGroups  = 16
	maxKeyLine = 16 << 10 // bytes, as OpenSSH's
)

// Operator is a person of a tenant. All their users and keys are one person.
type Operator struct {
	TenantID string   `json:"tenant_id"`
	Name     string   `json:"name"` // 1-64 printable characters; goes into the audit log
	Role     Role     `json:"role"`
	Users    []User   `json:"users,omitempty"`
	Keys     []Key    `json:"keys"`
	Groups   []string `json:"groups,omitempty"` // whose approvals a rule may ask for, sorted
	// Delegate stands in for them until AwayUntil; "" is nobody.
	Delegate  string    `json:"delegate,omitempty"`
	AwayUntil time.Time `json:"away_until,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// Key is a public key.
type Key struct {
	Fingerprint string `json:"fingerprint"` // SHA256:…, as ssh-keygen -l prints it
	Key         string `json:"key"`         // type and base64, as in authorized_keys
	Comment     string `json:"comment,omitempty"`
	// Since is when it became theirs.
	Since time.Time `json:"since,omitzero"`
}

// User is a user of the system.
type User struct {
	UID uint32 `json:"uid"`
	// Engine is the one whose machine's user it is, where several engines share a
	// database; "" is this machine's.
	Engine string    `json:"engine,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// ParseUser reads a user's number, alone or as in 1000@deck2, of the machine of an
// engine.
func ParseUser(uid string) (User, error) {
	number, engine, elsewhere := strings.Cut(uid, "@")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || elsewhere && !core.IsAgent(engine) {
		return User{}, core.Invalid("uid", core.Clip(uid), "a user's number, as id -u prints it, or NUMBER@ENGINE for another engine's machine")
	}
	return User{UID: uint32(n), Engine: engine}, nil
}

// Proof is how a caller of that user is known (core.Caller).
func (u User) Proof() string {
	if u.Engine != "" {
		return UserProofAt(int(u.UID), u.Engine)
	}
	return UserProof(int(u.UID))
}

// UserProof is how a caller of a user of the system is known.
func UserProof(uid int) string { return "uid:" + strconv.Itoa(uid) }

// UserProofAt is the same of a user of the machine of another engine, which says so:
// another person than the user of that number here, until an operator is said to
// be both.
func UserProofAt(uid int, engine string) string { return UserProof(uid) + "@" + engine }

// At is the proof of a user of this machine as one of the machine that has a name;
// others stay.
func At(proof, machine string) string {
	if !strings.HasPrefix(proof, "uid:") || IsUserAt(proof) {
		return proof
	}
	return proof + "@" + machine
}

// IsUserAt says whether a proof is one that UserProofAt made.
func IsUserAt(proof string) bool {
	return strings.HasPrefix(proof, "uid:") && strings.Contains(proof, "@")
}

// since is when each proof became the operator's.
func (o *Operator) since() map[string]time.Time {
	all := make(map[string]time.Time, len(o.Users)+len(o.Keys))
	for _, u := range o.Users {
		all[u.Proof()] = u.Since
	}
	for _, k := range o.Keys {
		all[k.Fingerprint] = k.Since
	}
	return all
}

// Person names the operator as core.Caller does: by every proof.
func (o *Operator) Person() string { return strings.Join(slices.Sorted(maps.Keys(o.since())), " ") }

// ParseKey reads a line of an authorized_keys file (sshd(8)). Options before
// the key are refused: they would be believed and not kept.
func ParseKey(line string) (Key, error) {
	line = strings.TrimSpace(line)
	if len(line) > maxKeyLine {
		return Key{}, core.Invalid("key", line[:32]+"…", "a public key of at most 16 KiB")
	}
	public, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil, len(strings.TrimSpace(string(rest))) > 0:
		return Key{}, core.Invalid("key", core.Clip(line), "one line of an authorized_keys file, such as ssh-ed25519 AAAA… name")
	case len(options) > 0:
		return Key{}, core.Invalid("key", core.Clip(line), "a key without options before it")
	}
	if c, is := public.(ssh.CryptoPublicKey); is {
		if key, is := c.CryptoPublicKey().(ed25519.PublicKey); is && audit.SmallOrder(key) {
			return Key{}, core.Invalid("key", core.Clip(line), "a key for which one must have the private key to sign")
		}
	}
	return Key{
		Fingerprint: ssh.FingerprintSHA256(public),
		Key:         strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))),
		Comment:     core.OneLine(comment, 60),
	}, nil
}

// CheckName reports a name that no operator can have, as that of a field.
func CheckName(field, name string) error {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if n := utf8.RuneCountInString(name); n < 1 || n > 64 || !utf8.ValidString(name) || strings.TrimSpace(name) != name || strings.ContainsFunc(name, hidden) {
		return core.Invalid(field, name, "1-64 printable characters without space around them")
	}
	return nil
}

// Check reports the first bad field of an operator.
func (o *Operator) Check() error {
	if err := CheckName("name", o.Name); err != nil {
		return err
	}
	if !slices.Contains(Roles(), o.Role) {
		return core.Invalid("role", string(o.Role), "viewer, operator, approver, admin")
	}
	if len(o.Keys)+len(o.Users) < 1 {
		return core.Errorf(core.InvalidInput, "operator %s: neither a user of the system nor a key; one is needed, --uid or --key", o.Name).With("field", "keys")
	}
	for field, c := range map[string][2]int{"keys": {len(o.Keys), MaxKeys}, "uid": {len(o.Users), MaxUsers}, "group": {len(o.Groups), MaxGroups}} {
		if c[0] > c[1] {
			return core.Errorf(core.InvalidInput, "operator %s: %d of %s; at most %d are allowed", o.Name, c[0], field, c[1]).With("field", field)
		}
	}
	for i, k := range o.Keys {
		if slices.ContainsFunc(o.Keys[:i], func(other Key) bool { return other.Fingerprint == k.Fingerprint }) {
			return core.Invalid("keys", k.Fingerprint, "each key once")
		}
	}
	for i, u := range o.Users {
		if slices.ContainsFunc(o.Users[:i], func(other User) bool { return other.Proof() == u.Proof() }) {
			return core.Invalid("uid", strings.TrimPrefix(u.Proof(), "uid:"), "each user once")
		}
	}
	o.Groups = slices.Compact(slices.Sorted(slices.Values(o.Groups)))
	for _, g := range o.Groups {
		if err := CheckName("group", g); err != nil {
			return err
		}
	}
	return nil
}

// state is what reconcile compares.
func (o *Operator) state() any {
	return struct {
		Role   Role                 `json:"role"`
		Proofs map[string]time.Time `json:"proofs"`
		Groups []string             `json:"groups,omitempty"`
	}{o.Role, o.since(), o.Groups}
}
