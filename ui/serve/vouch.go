package serve

import (
	"cmp"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
)

// peerUser is the name by which an engine comes to another's door.
const peerUser = "engine"

// varVouch is the variable by which an engine says whom a session is for.
const varVouch = "SWARMDECK_SESSION_VOUCH"

// Bounds of a vouch, in bytes.
const (
	maxVouch = 2 << 10
	maxSeat  = 128
)

// relayProtocol numbers what engines say to each other to pass a session on, from the
// vouch to its end. It grows when an older engine would misunderstand a newer one.
const relayProtocol = 1

// Vouch is what an engine says to another of who is at one of its doors. Their
// role, and whether the key opens the tenant at all, the other looks up itself.
type Vouch struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// Key is the fingerprint of the key that they proved, or User the number of
	// the user of the engine's machine that they are.
	Key  string  `json:"key,omitempty"`
	User *uint32 `json:"user,omitempty"`
	// Seat is the machine that they came from, or their terminal.
	Seat string `json:"seat,omitempty"`
	// Protocol is the relayProtocol of who says it; a login sets it.
	Protocol int `json:"protocol,omitzero"`
}

// Check reports the first bad field.
func (v Vouch) Check() error {
	if err := core.CheckTenant(v.Tenant); err != nil {
		return err
	}
	if err := operator.CheckName("name", v.Name); err != nil {
		return err
	}
	switch hash, is := strings.CutPrefix(v.Key, "SHA256:"); {
	case v.Key == "" && v.User == nil, v.Key != "" && v.User != nil:
		return core.Errorf(core.InvalidInput, "key, user: one of both is required").With("field", "key")
	case v.Key != "" && (!is || len(hash) != 43 || strings.Trim(hash, base64) != ""):
		return core.Invalid("key", core.Clip(v.Key), "the fingerprint of a public key, as ssh-keygen -l prints it")
	case len(v.Seat) > maxSeat || !core.Printable(v.Seat):
		return core.Invalid("seat", core.Clip(v.Seat), "at most 128 bytes of printable characters")
	}
	return nil
}

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// parseVouch reads what an engine says.
func parseVouch(text string) (v Vouch, err error) {
	if len(text) > maxVouch {
		return v, core.Errorf(core.InvalidInput, "%d bytes, at most %d are allowed", len(text), maxVouch)
	}
	var by struct {
		Protocol int `json:"protocol"`
	}
	if core.DecodeStored([]byte(text), &by) == nil && cmp.Or(by.Protocol, relayProtocol) != relayProtocol {
		return v, core.Errorf(core.Unavailable, "the other engine passes sessions on by protocol %d and this one by %d: upgrade the older", by.Protocol, relayProtocol)
	}
	if err := core.Decode([]byte(text), &v); err != nil {
		return Vouch{}, err
	}
	return v, v.Check()
}

// who is the one that an engine vouches for.
func (v Vouch) who(by Who) Who {
	by.Name, by.Tenant, by.Key, by.From = v.Name, v.Tenant, v.Key, v.Seat
	if v.User != nil {
		by.User = operator.UserProofAt(int(*v.User), by.Peer)
	}
	return by
}

// vouched notes whom the session is for.
func (c *channel) vouched(text string) {
	v, err := parseVouch(text)
	switch {
	case c.who.Peer == "":
		err = core.Errorf(core.Denied, "only another engine vouches for somebody")
	case c.who.Tenant != "":
		err = core.Errorf(core.InvalidInput, "given twice")
	}
	if err != nil {
		c.bad = core.Errorf(core.AsError(err).Code, "vouch: %v", err)
		return
	}
	c.who = v.who(c.who)
}
