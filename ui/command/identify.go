package command

import (
	"errors"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/keyring"
)

// operator is who asks, before it is known in which tenant. The name goes into the
// audit log, where it stays.
func (c *call) operator() (core.Caller, error) {
	by := c.env.Caller
	if by.Kind == core.Agent {
		return by, nil
	}
	by.Kind = core.Operator
	if DatabaseIn(c.g.Data) != "" { // which is worked on from several machines
		by.Proof = operator.At(by.Proof, Machine())
	}
	if c.as() {
		by.Name = c.g.As
		return by, operator.CheckName("as", by.Name)
	}
	if by.Name == "" {
		by.Name = userName(by.Proof)
	}
	return by, nil
}

// Machine is the name that this machine has among those that share a database.
func Machine() string {
	name, err := os.Hostname()
	if err != nil || !core.IsAgent(name) {
		return "unnamed"
	}
	return name
}

// as says whether the line names who it is to be from.
func (c *call) as() bool { return c.g.As != "" || c.flags != nil && c.flags.Changed("as") }

// userName is how the system calls the user of a proof: no variable of the
// environment says who somebody is.
func userName(proof string) string {
	proof, _, _ = strings.Cut(proof, "@")
	uid, is := strings.CutPrefix(proof, "uid:")
	if !is {
		return "operator"
	}
	if u, err := user.LookupId(uid); err == nil && operator.CheckName("as", u.Username) == nil {
		return u.Username
	}
	return proof
}

// identify settles who the caller is in a tenant, by what their door proved of
// them, and by a key when --as names another. A name that is not theirs is
// refused and audited.
func (c *call) identify(by core.Caller) (core.Caller, error) {
	if by.Kind != core.Operator {
		return by, nil
	}
	as := c.as()
	known, is := c.eng.Operators.Whose(by.Tenant, by.Proof)
	switch {
	case is && (!as || known.Name == by.Name):
		return known.By(by), nil
	case c.env.Remote && by.Proof != "" && !operator.IsUserAt(by.Proof): // the door knew them, until now
		return by, core.Errorf(core.Denied, "what your key opens was changed: connect again")
	}
	by.Person = by.Proof
	theirs, err := c.eng.Operators.Operator(c.ctx, by.Tenant, by.Name)
	nobody := errors.Is(err, core.Kind(core.NotFound))
	switch {
	case err != nil && !nobody:
		return by, err
	case !as && nobody:
		return by, nil
	case !as: // a person of the system's name for this user, whom that user is not
		by.Name = by.Proof
		return by, nil
	case nobody && by.Name == userName(by.Proof) && !is:
		return by, nil
	case nobody:
		return by, c.notThem(by, "and there is no operator of that name")
	}
	grant, err := c.prove(theirs)
	if errors.Is(err, core.Kind(core.NotFound)) {
		return by, c.notThem(by, "and none of their keys is at hand: give one with --key FILE, or add it to ssh-agent")
	}
	if err != nil {
		return by, err
	}
	c.role = Role(grant.Role)
	return grant.By(by), nil
}

// prove has a key at hand show that the caller is an operator.
func (c *call) prove(who operator.Operator) (operator.Grant, error) {
	ring, err := c.keyring()
	if err != nil {
		return operator.Grant{}, err
	}
	defer ring.Close()
	print, err := ring.Prove(who.Keys)
	if err != nil {
		return operator.Grant{}, err
	}
	grant, is := c.eng.Operators.Whose(who.TenantID, print)
	if !is || grant.Name != who.Name {
		return operator.Grant{}, core.Errorf(core.Conflict, "--as: what the keys of %s open was changed meanwhile; try again", who.Name).With("field", "as")
	}
	return grant, nil
}

// keyring is the caller's keys: those of this machine's user alone.
func (c *call) keyring() (*keyring.Ring, error) {
	file := c.g.Key
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(c.env.Dir, file)
	}
	return keyring.Open(file, c.env.getenv("SSH_AUTH_SOCK"))
}

// signer signs statements with the caller's keys; nil for who sits at another machine
// that does not sign, and for an agent.
func (c *call) signer() func(text string, keys []operator.Key) ([]byte, error) {
	elsewhere := c.env.Signer
	if at := c.env.getenv(keyring.SignerVariable); elsewhere == nil && at != "" {
		elsewhere = func() (io.ReadWriteCloser, error) { return net.DialTimeout("unix", at, 2*time.Second) }
	}
	switch {
	case c.env.Caller.Kind == core.Agent, c.env.Remote && elsewhere == nil:
		return nil
	case elsewhere != nil && (c.env.Remote || c.g.Key == ""):
		return func(text string, keys []operator.Key) ([]byte, error) {
			conn, err := elsewhere()
			if err != nil {
				return nil, core.Errorf(core.Unavailable, "signature: %v", err).With("field", "signature")
			}
			return keyring.Ask(conn, text, keys)
		}
	}
	return func(text string, keys []operator.Key) ([]byte, error) {
		ring, err := c.keyring()
		if err != nil {
			return nil, err
		}
		defer ring.Close()
		return ring.Sign(judge.SignNamespace, text, keys)
	}
}

// notThem refuses a name that is not the caller's.
func (c *call) notThem(by core.Caller, why string) error {
	name := by.Name
	if by.Name = userName(by.Proof); c.opened.ReadOnly && !c.g.ReadOnly { // who only reads can't write it down
		if _, err := c.open(Need{Data: c.g.Data, Tenant: c.opened.Tenant}); err != nil {
			return err
		}
	}
	cause := core.Errorf(core.Denied, "--as: you are %s, which is not %s, %s", by.Proof, name, why).With("field", "as").With("value", name)
	if c.g.ReadOnly {
		return cause
	}
	return c.eng.Operators.Refused(c.ctx, by, cause)
}

// anywhere is identify for what belongs to no tenant: a name that is given has to be that of
// the caller's user, in some tenant.
func (c *call) anywhere(by core.Caller) error {
	if by.Kind != core.Operator || !c.as() || by.Name == userName(by.Proof) {
		return nil
	}
	if slices.ContainsFunc(c.eng.Operators.Grants(by.Proof), func(g operator.Grant) bool { return g.Name == by.Name }) {
		return nil
	}
	return core.Errorf(core.Denied, "--as: you are %s, which is not %s; a key proves it only within a tenant", by.Proof, by.Name).With("field", "as")
}

// mayAgent holds the line of a process of the engine's against what such a
// process may do, whatever names and tenants it gives: look at what operations let
// it, by a person's door. What has an effect goes by its own tools, where each call
// is judged.
func (c *call) mayAgent(s spec) error {
	by, path := c.env.Caller, commandPath(c.cmd)
	if by.Kind != core.Agent {
		return nil
	}
	switch {
	case path == "":
		path = "the cockpit"
		if c.g.Script != "" {
			path = "--script"
		}
		fallthrough
	case s.effect != Reads || !s.forAgents && path != "version" && path != "help":
		return core.Errorf(core.Denied, "%s: only a person may, and this process is one of %s", path, by.Name).With("field", "command")
	case c.flags.Changed("as"):
		return core.Errorf(core.Denied, "--as: this process is one of %s, whatever the line says", by.Name).With("field", "as")
	case c.g.Tenant != "" && c.g.Tenant != by.Tenant:
		return core.Errorf(core.Denied, "--tenant: this process is one of %s in %s, not of %s", by.Name, by.Tenant, core.Clip(c.g.Tenant)).With("field", "tenant")
	}
	return nil
}
