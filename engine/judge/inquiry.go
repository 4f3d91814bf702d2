package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Inquiry is what a person asked before they answer an approval, and what whoever
// asked for it said to that. Neither decides anything.
type Inquiry struct {
	By        string    `json:"by"`
	At        time.Time `json:"at"`
	Text      string    `json:"text"`
	Reply     string    `json:"reply,omitempty"`
	RepliedBy string    `json:"replied_by,omitempty"`
	RepliedAt time.Time `json:"replied_at,omitzero"`
}

// Bounds of what is asked about one approval.
const (
	maxInquiries = 10
	maxInquiry   = 1024 // bytes
	maxReply     = 4096 // bytes
)

// Inquirer is an owner of a gate that hands questions to the agents that wait there.
type Inquirer interface {
	// Listens refuses the question to an agent that can't hear it while it waits.
	Listens(a *Approval) error
	// Inquire hands it on, once it is on disk. It does not block.
	Inquire(a *Approval, text string)
}

// Inquire asks who asked for an open approval a question. The deadline stays.
func (j *Judge) Inquire(ctx context.Context, by core.Caller, id, text string) (Approval, error) {
	if text = strings.TrimSpace(text); text == "" || len(text) > maxInquiry || !utf8.ValidString(text) {
		return Approval{}, core.Invalid("text", core.Clip(text), fmt.Sprintf("1-%d bytes of UTF-8", maxInquiry))
	}
	return j.adjust(ctx, by, id, "ask about", func(tx *audit.Tx, a *Approval) error {
		if len(a.Inquiries) >= maxInquiries {
			return core.Errorf(core.Conflict, "approval %s: %d questions were asked about it; at most %d are", id, len(a.Inquiries), maxInquiries)
		}
		if in, is := j.owners[a.Gate].(Inquirer); is && a.RequestedKind == core.Agent {
			if err := in.Listens(a); err != nil {
				return err
			}
			told := *a
			tx.OnCommit(func() { in.Inquire(&told, text) })
		}
		a.Inquiries = append(slices.Clone(a.Inquiries), Inquiry{By: by.Name, At: tx.Now(), Text: text})
		return j.save(tx, a, "approval.inquired", map[string]any{"by": by.Name, "text_sha256": core.SHA256(text)})
	})
}

// Reply is what who asked for an approval says to the newest question about it.
func (j *Judge) Reply(ctx context.Context, by core.Caller, id, text string) (Approval, error) {
	if text = strings.TrimSpace(text); text == "" || len(text) > maxReply || !utf8.ValidString(text) {
		return Approval{}, core.Invalid("text", core.Clip(text), fmt.Sprintf("1-%d bytes of UTF-8", maxReply))
	}
	return j.asOwner(ctx, by, id, "reply about", func(tx *audit.Tx, a *Approval) error {
		n := len(a.Inquiries) - 1
		if n < 0 || a.Inquiries[n].Reply != "" {
			return core.Errorf(core.Conflict, "approval %s: nobody waits for a reply about it", id)
		}
		a.Inquiries = slices.Clone(a.Inquiries)
		in := &a.Inquiries[n]
		in.Reply, in.RepliedBy, in.RepliedAt = text, by.Name, tx.Now()
		return j.save(tx, a, "approval.replied", map[string]any{"by": by.Name, "text_sha256": core.SHA256(text)})
	})
}

// Recall takes an open approval back: who asked no longer wants it. It is void, and its
// gate answers as for a denial.
func (j *Judge) Recall(ctx context.Context, by core.Caller, id, reason string) (Approval, error) {
	reason = strings.TrimSpace(reason)
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		return Approval{}, core.Invalid("reason", core.Clip(reason), fmt.Sprintf("at most %d bytes of UTF-8", maxReason))
	}
	return j.asOwner(ctx, by, id, "withdraw", func(tx *audit.Tx, a *Approval) error {
		a.Status, a.VoidedAt, a.VoidReason = Voided, tx.Now(), core.ClipTo(joined(": ", "withdrawn by "+by.Name, reason), maxReason)
		a.DeferredUntil = time.Time{}
		d := a.decision(tx.By, Deny, reasonRecalled)
		d.Rationale = reason
		if err := j.record(tx, &d); err != nil {
			return err
		}
		a.DecisionID = d.DecisionID
		if err := j.save(tx, a, "approval.withdrawn", map[string]any{"by": by.Name, "reason_sha256": core.SHA256(reason), "digest": a.Digest, "decision_id": d.DecisionID}); err != nil {
			return err
		}
		return j.settle(tx, a, Outcome{Args: a.Action.Args, Reason: a.VoidReason, By: by.Name, Decision: d})
	})
}

// asOwner changes an open approval for who asked for it. Anyone else is refused, and
// that is audited.
func (j *Judge) asOwner(ctx context.Context, by core.Caller, id, what string, fn func(*audit.Tx, *Approval) error) (Approval, error) {
	if err := j.local(ctx, by, core.ApprovalPrefix, "approval", id); err != nil {
		return Approval{}, err
	}
	return j.alter(ctx, by, id, what, func(_ *audit.Tx, a *Approval) error {
		if by.Kind == a.RequestedKind && by.Is(a.RequestedBy, a.RequestedPerson) {
			return nil
		}
		return core.Errorf(core.Denied, "approval %s: only who asked for it may %s it: %s %s", id, what, a.RequestedKind, a.RequestedBy)
	}, fn)
}

// OfCall is the open approval of an agent's call or question in a task, from memory; nil
// for none.
func (j *Judge) OfCall(tenant, task, call string) *Approval {
	for _, a := range j.Live(tenant) {
		if a.TaskID == task && a.Action.CallID == call && (a.Gate == GateTool || a.Gate == GateQuestion) {
			return a
		}
	}
	return nil
}

// erase takes out what the subject asked, and what was said for them.
func (in *Inquiry) erase(e *record.Erasure, said bool) {
	if in.By == e.Of.Name {
		e.Wipe(&in.Text)
	}
	if said {
		e.Wipe(&in.Reply)
	}
}
