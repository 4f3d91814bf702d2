package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

const maxRemarks = 500 // of a review

// Review is what people say about the work in a tree, before it is sent.
type Review struct {
	Agent    string   `json:"agent"`
	TenantID string   `json:"tenant_id"`
	Remarks  []Remark `json:"remarks"`
	Checked  *Checked `json:"checked,omitempty"`
	Viewed   []Viewed `json:"viewed,omitempty"`
	// Met are files that another agent, whose name comes later, has changed too, and of
	// which both were told.
	Met       map[string][]string `json:"met,omitempty"`
	CreatedAt time.Time           `json:"created_at"`
	UpdatedAt time.Time           `json:"updated_at"`
	AuditSeq  uint64              `json:"audit_seq,omitzero"`
}

// Remark is about a line of a file, or about a file or all of it.
type Remark struct {
	ID   int       `json:"id"` // from 1, in the review
	File string    `json:"file,omitempty" allow:"at most 4096 printable bytes"`
	Line int       `json:"line,omitzero" allow:"0-1073741824"` // of the file as the agent left it
	Last int       `json:"last,omitzero"`                      // the last line, of several
	Old  bool      `json:"old,omitzero"`                       // they are lines of the file as it was
	Text string    `json:"text" allow:"1-10000 bytes of UTF-8"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Sent string    `json:"sent,omitempty"` // the task that it became part of
}

// Place is where a remark stands: FILE:LINE.
func (r Remark) Place() string {
	was := ""
	if r.Old {
		was = " as it was"
	}
	switch {
	case r.File == "":
		return "all of it"
	case r.Line == 0:
		return r.File
	case r.Last > r.Line:
		return fmt.Sprintf("%s:%d-%d%s", r.File, r.Line, r.Last, was)
	}
	return fmt.Sprintf("%s:%d%s", r.File, r.Line, was)
}

// Checked is what the checks of a project said of a state.
type Checked struct {
	State string    `json:"state"`
	OK    bool      `json:"ok"`
	Runs  []Ran     `json:"runs"`
	At    time.Time `json:"at"`
}

// Review is that of an agent's tree; an empty one where nobody has said anything.
func (s *Trees) Review(tenant, agent string) Review {
	if r := s.reviews.Get(tenant, agent); r != nil {
		return *r
	}
	return Review{Agent: agent, TenantID: tenant}
}

// Open are the remarks that were not sent yet.
func (r *Review) Open() []Remark {
	return core.Where(r.Remarks, func(m Remark) bool { return m.Sent == "" })
}

// amend changes a review in a transaction of its own.
func (s *Trees) amend(ctx context.Context, by core.Caller, agent, event string, change func(tx *audit.Tx, r *Review) error) (out Review, err error) {
	if _, err := s.Tree(by.Tenant, agent); err != nil {
		return out, err
	}
	err = s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.drafts.Load(tx, agent)
		if err != nil {
			return err
		}
		out = Review{Agent: agent}
		if old != nil {
			out = *old
			out.Remarks = slices.Clone(old.Remarks)
		}
		if err := change(tx, &out); err != nil {
			return err
		}
		return s.drafts.Save(tx, record.Event{Type: event, Detail: map[string]any{"remarks": len(out.Remarks)}}, old, &out)
	})
	return out, err
}

// Remark adds a remark to the draft.
func (s *Trees) Remark(ctx context.Context, by core.Caller, agent string, m Remark) (Remark, error) {
	if err := bound.Check(m); err != nil {
		return m, err
	}
	switch {
	case strings.TrimSpace(m.Text) == "":
		return m, core.Invalid("text", m.Text, "a text that is not only white space")
	case m.Last != 0 && m.Last < m.Line:
		return m, core.Invalid("line", m.Line, "a line of the file, or FIRST-LAST")
	}
	_, err := s.amend(ctx, by, agent, "review.remarked", func(tx *audit.Tx, r *Review) error {
		if len(r.Remarks) >= maxRemarks {
			return core.Errorf(core.Conflict, "a review holds at most %d remarks; send it", maxRemarks)
		}
		m.ID, m.By, m.At = 1, by.Name, tx.Now()
		if n := len(r.Remarks); n > 0 {
			m.ID = r.Remarks[n-1].ID + 1
		}
		r.Remarks = append(r.Remarks, m)
		return nil
	})
	return m, err
}

// Unremark takes a remark that was not sent back out of the draft.
func (s *Trees) Unremark(ctx context.Context, by core.Caller, agent string, id int) (gone Remark, err error) {
	_, err = s.amend(ctx, by, agent, "review.unremarked", func(_ *audit.Tx, r *Review) error {
		at := slices.IndexFunc(r.Remarks, func(m Remark) bool { return m.ID == id && m.Sent == "" })
		if at < 0 {
			return core.Errorf(core.NotFound, "remark: the review of %s has no unsent remark %d", agent, id).With("field", "remark")
		}
		gone = r.Remarks[at]
		r.Remarks = slices.Delete(r.Remarks, at, at+1)
		return nil
	})
	return gone, err
}

// Message is what the agent is told of the remarks that were not sent yet.
func (r *Review) Message() string {
	var b strings.Builder
	b.WriteString("Your changes were reviewed. Please work these remarks in, and say what you did about each.\n")
	for _, m := range r.Open() {
		fmt.Fprintf(&b, "\n%s\n", m.Place())
		for line := range strings.Lines(strings.TrimSpace(m.Text)) {
			b.WriteString("    " + line)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Sent notes the task that the open remarks became.
func (s *Trees) Sent(ctx context.Context, by core.Caller, agent, task string) (Review, error) {
	return s.amend(ctx, by, agent, "review.sent", func(_ *audit.Tx, r *Review) error {
		for n := range r.Remarks {
			if r.Remarks[n].Sent == "" {
				r.Remarks[n].Sent = task
			}
		}
		return nil
	})
}

// checked keeps what the checks said.
func (s *Trees) checked(ctx context.Context, by core.Caller, agent string, c Checked) error {
	_, err := s.amend(ctx, by, agent, "review.checked", func(tx *audit.Tx, r *Review) error {
		c.At = tx.Now()
		r.Checked = &c
		return nil
	})
	return err
}

// maxViewed bounds the files that were viewed of one agent's work.
const maxViewed = 5000

// Viewed is a file that somebody has seen, as the diff of it then was.
type Viewed struct {
	File   string    `json:"file"`
	By     string    `json:"by"`
	SHA256 string    `json:"sha256"` // of its part of the patch
	At     time.Time `json:"at"`
}

// View notes that somebody has seen what became of a file. When the agent changes it
// once more it is to be seen anew.
func (s *Trees) View(ctx context.Context, by core.Caller, agent, file string) (v Viewed, err error) {
	c, err := s.Compare(ctx, by.Tenant, agent, Query{})
	if err != nil {
		return v, err
	}
	at := slices.IndexFunc(c.Changes, func(ch Change) bool { return ch.Path == file })
	if at < 0 {
		return v, core.Invalid("file", core.Clip(file), "a file that "+agent+" has changed")
	}
	c.Paths = []string{file}
	if from := c.Changes[at].From; from != "" {
		c.Paths = append(c.Paths, from)
	}
	sum := sha256.New()
	if err := s.Write(ctx, c, sum); err != nil {
		return v, err
	}
	v = Viewed{File: file, By: by.Name, SHA256: hex.EncodeToString(sum.Sum(nil))}
	_, err = s.amend(ctx, by, agent, "review.viewed", func(tx *audit.Tx, r *Review) error {
		if r.Viewed = r.without(file, by.Name); len(r.Viewed) >= maxViewed {
			return core.Errorf(core.Conflict, "a review holds at most %d files that were viewed", maxViewed)
		}
		v.At = tx.Now()
		r.Viewed = append(r.Viewed, v)
		return nil
	})
	return v, err
}

// Unview takes that back.
func (s *Trees) Unview(ctx context.Context, by core.Caller, agent, file string) (v Viewed, err error) {
	_, err = s.amend(ctx, by, agent, "review.unviewed", func(_ *audit.Tx, r *Review) error {
		left := r.without(file, by.Name)
		if len(left) == len(r.Viewed) {
			return core.Errorf(core.NotFound, "file: %s has not marked %s as viewed", by.Name, core.Clip(file)).With("field", "file")
		}
		r.Viewed = left
		return nil
	})
	return Viewed{File: file, By: by.Name}, err
}

func (r *Review) without(file, by string) []Viewed {
	return slices.DeleteFunc(slices.Clone(r.Viewed), func(v Viewed) bool { return v.File == file && v.By == by })
}

// Parts are the digests of a patch's parts, one of each file.
func Parts(patch []byte) map[string]bool {
	head := []byte("diff --git ")
	all := map[string]bool{}
	for len(patch) > 0 {
		end := len(patch)
		if i := bytes.Index(patch[1:], append([]byte("\n"), head...)); i >= 0 {
			end = i + 2
		}
		all[core.SHA256(string(patch[:end]))] = true
		patch = patch[end:]
	}
	return all
}

// Seen are the files of a patch that were viewed as they are in it, with who did, in
// the order of what they did.
func (r *Review) Seen(parts map[string]bool) map[string][]string {
	all := map[string][]string{}
	for _, v := range r.Viewed {
		if parts[v.SHA256] {
			all[v.File] = append(all[v.File], v.By)
		}
	}
	return all
}
