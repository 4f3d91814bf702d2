package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

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
