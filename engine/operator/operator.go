// Package operator keeps who may enter a tenant from elsewhere, with which
// public keys and in which role. A process of this machine's own user needs no
// entry: whoever can open the data file rules it.
package operator

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

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
	maxKeyLine = 16 << 10 // bytes, as OpenSSH's
)

// Operator is someone who may enter a tenant.
type Operator struct {
	TenantID  string    `json:"tenant_id"`
	Name      string    `json:"name"` // 1-64 printable characters; goes into the audit log
	Role      Role      `json:"role"`
	Keys      []Key     `json:"keys"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// Key is a public key.
type Key struct {
	Fingerprint string `json:"fingerprint"` // SHA256:…, as ssh-keygen -l prints it
	Key         string `json:"key"`         // type and base64, as in authorized_keys
	Comment     string `json:"comment,omitempty"`
}

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
	if len(o.Keys) < 1 || len(o.Keys) > MaxKeys {
		return core.Errorf(core.InvalidInput, "operator %s: %d keys; 1-%d are allowed", o.Name, len(o.Keys), MaxKeys).With("field", "keys")
	}
	for i, k := range o.Keys {
		if slices.ContainsFunc(o.Keys[:i], func(other Key) bool { return other.Fingerprint == k.Fingerprint }) {
			return core.Invalid("keys", k.Fingerprint, "each key once")
		}
	}
	return nil
}

// state is what reconcile compares.
func (o *Operator) state() any {
	prints := make([]string, len(o.Keys))
	for i, k := range o.Keys {
		prints[i] = k.Fingerprint
	}
	return struct {
		Role Role     `json:"role"`
		Keys []string `json:"keys"`
	}{o.Role, prints}
}
