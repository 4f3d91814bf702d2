package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"swarmdeck/engine/core"
)

// draft is a Send that is well formed, with its defaults. What depends on the
// state of the tenant is checked when it is accepted.
type draft struct {
	Send
	digest   string // sha256 of the payload, hex
	reply    bool   // is meant to close a conversation, nothing else
	resendOf *Message
	accepted func(*Message) // told inside the transaction, before anybody sees the message
}

// check reports the first thing wrong with a message by itself (seed 3,
// Message Validation). It does what is costly, so that the transaction has
// little left to do.
func (s Send) check() (*draft, error) {
	d := &draft{Send: s}
	if err := d.address(); err != nil {
		return nil, err
	}
	if d.TTL == 0 {
		d.TTL = DefaultTTL
	}
	if d.TTL < 1 || d.TTL > MaxTTL {
		return nil, core.Invalid("ttl", s.TTL, fmt.Sprintf("1-%d seconds", MaxTTL))
	}
	if d.Priority == 0 {
		d.Priority = DefaultPriority
	}
	if d.Priority < 1 || d.Priority > LowestPriority {
		return nil, core.Invalid("priority", s.Priority, fmt.Sprintf("1 (highest) to %d", LowestPriority))
	}
	if d.CorrelationID != "" && !core.IsUUID(d.CorrelationID) {
		return nil, core.Invalid("correlation_id", s.CorrelationID, "a version 4 UUID in lower case")
	}
	if d.Type == Response && d.CorrelationID == "" {
		return nil, core.Errorf(core.InvalidInput, "correlation_id: a response needs that of its request").With("field", "correlation_id")
	}
	if d.Trace != "" {
		if err := core.CheckTrace(d.Trace); err != nil {
			return nil, err
		}
	}
	if err := core.CheckObject("payload", d.Payload, MaxPayload); err != nil {
		return nil, err
	}
	d.Payload = bytes.Clone(d.Payload)
	if err := d.Payload.Compact(); err != nil {
		return nil, core.Errorf(core.InvalidInput, "payload: not valid JSON: %v", err).With("field", "payload")
	}
	sum := sha256.Sum256(d.Payload)
	d.digest = hex.EncodeToString(sum[:])
	return d, nil
}

// address checks where a message goes and what kind may go there.
func (d *draft) address() error {
	if d.Type == "" {
		d.Type = Event
	}
	if !slices.Contains(Types(), d.Type) {
		return core.Invalid("message_type", string(d.Type), "event, request, response, error")
	}
	switch {
	case d.Topic == "" && d.Recipient == "":
		return core.Errorf(core.InvalidInput, "topic or recipient_id: a message needs one of them").With("field", "topic")
	case d.Topic != "" && d.Recipient != "":
		return core.Errorf(core.InvalidInput, "topic and recipient_id: a message has only one of them").With("field", "recipient_id")
	case d.Type == Request && (d.Topic != "" || d.Recipient == Broadcast):
		return core.Errorf(core.InvalidInput, "recipient_id: a request goes to one recipient, who answers it").With("field", "recipient_id")
	case d.Type == Response && (d.Topic != "" || d.Recipient == Broadcast):
		return core.Errorf(core.InvalidInput, "recipient_id: a response goes to the sender of its request").With("field", "recipient_id")
	case d.Topic != "":
		return checkPublish(d.Topic)
	}
	return nil
}

// parties checks that sender and recipient exist. Who sent a message that is
// sent again may be gone by now.
func (b *Bus) parties(tenant string, d *draft) error {
	dir := b.opt.Directory
	if d.Sender != System && d.resendOf == nil && !dir.Known(tenant, d.Sender) {
		return b.stranger(tenant, "sender_id", d.Sender, `"system" or an agent of this tenant`)
	}
	if d.Recipient != "" && d.Recipient != System && d.Recipient != Controller && d.Recipient != Broadcast && !dir.Known(tenant, d.Recipient) {
		return b.stranger(tenant, "recipient_id", d.Recipient, "an agent of this tenant, controller, system, broadcast")
	}
	if d.Task != "" {
		if _, err := core.LocalSeq(core.TaskPrefix, tenant, d.Task); err != nil {
			return err
		}
	}
	return nil
}

// stranger tells a name of another tenant from one that nobody has.
func (b *Bus) stranger(tenant, field, id, allowed string) error {
	dir, ok := b.opt.Directory.(foreigners)
	elsewhere := ok && dir.Elsewhere(tenant, id)
	if core.IsUUID(id) && !elsewhere {
		_, err := core.LocalUUID(field, tenant, id)
		elsewhere = err != nil
	}
	if elsewhere {
		return fmt.Errorf("%s %s: %w", field, id, core.ErrForeign)
	}
	return core.Invalid(field, id, allowed)
}
