package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// MaxEdit bounds a file that a person edits in a tree, in bytes.
const MaxEdit = 1 << 20

// Edited is a file of a tree, as a person reads and writes it.
type Edited struct {
	Agent   string `json:"agent"`
	File    string `json:"file"`
	State   string `json:"state"` // of the tree that it was read in
	Content string `json:"content,omitempty"`
}

// String tells what was done.
func (e Edited) String() string { return e.File + " is written in the tree of " + e.Agent }

// File reads a file of an agent's tree as it is now.
func (s *Trees) File(ctx context.Context, tenant, agent, path string) (e Edited, err error) {
	t, err := s.at(tenant, agent)
	if err != nil {
		return e, err
	}
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return e, err
	}
	content, err := s.opt.Driver.File(ctx, t, now.Commit, path)
	if err == nil && !utf8.Valid(content) {
		err = core.Invalid("file", path, "a text in UTF-8")
	}
	return Edited{agent, path, now.Commit, string(content)}, err
}

// Edit writes a file in the tree of an agent that is idle. State is the one that its
// content was read in: a file that is another by now is a conflict; "" is any.
func (s *Trees) Edit(ctx context.Context, by core.Caller, agent, path, state string, content []byte) (e Edited, err error) {
	t, err := s.at(by.Tenant, agent)
	if err != nil {
		return e, err
	}
	if s.opt.busy(by.Tenant, agent) {
		return e, core.Errorf(core.Conflict, "agent: %s works; its files are changed while it is idle", agent).With("field", "agent").With("value", agent)
	}
	if len(content) > MaxEdit {
		return e, core.Invalid("content", fmt.Sprintf("%d bytes", len(content)), fmt.Sprintf("at most %d bytes", MaxEdit))
	}
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return e, err
	}
	e = Edited{Agent: agent, File: path, State: now.Commit}
	was, err := s.opt.Driver.File(ctx, t, now.Commit, path)
	if err != nil {
		return e, err
	}
	if state != "" && state != now.Commit {
		if read, err := s.opt.Driver.File(ctx, t, state, path); err != nil || !bytes.Equal(read, was) {
			return e, core.Errorf(core.Conflict, "file: %s was changed since you read it", path).With("field", "file").With("value", path)
		}
	}
	if bytes.Equal(was, content) {
		return e, nil
	}
	sum := sha256.Sum256(content)
	detail := map[string]any{"file": path, "sha256": hex.EncodeToString(sum[:])}
	if err := s.saveWith(ctx, by, "tree.edit", &t, nil, detail); err != nil {
		return e, err
	}
	if err := s.opt.Driver.Edit(ctx, t, "edit-"+agent, now.Commit, path, content); err != nil {
		return e, fmt.Errorf("write %s in the tree of %s: %w", path, agent, err)
	}
	return e, s.saveWith(ctx, by, "tree.edited", &t, nil, detail)
}
