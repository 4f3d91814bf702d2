package cad

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
)

// written is a file as a workflow left it.
type written struct {
	Size    int64 `json:"size"`
	ModTime int64 `json:"mod_time"` // ns since the epoch
}

func writtenAs(f fs.FileInfo) written { return written{f.Size(), f.ModTime().UnixNano()} }

// fileAt is what lies at a path below a directory, nil when nothing does. What
// can't be looked at is the CAD environment's to refuse.
func fileAt(dir, path string) fs.FileInfo {
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		path = rel
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	there, err := root.Lstat(path)
	if err != nil {
		return nil
	}
	return there
}

// writtenKey is where a workflow's file is noted: among its marks, which go
// when it is completed.
func (x *execution) writtenKey() record.Key { return record.Text(x.op.Origin + "/").Last(x.file) }

// own reports whether a file is the operation's own: it was about to write it
// when an engine died, or its workflow wrote it and nobody changed it since.
func (x *execution) own(ctx context.Context, there fs.FileInfo) (mine bool, err error) {
	err = x.c.ledger.View(ctx, x.by.Tenant, func(tx *audit.Tx) error {
		if x.op.Mark != "" {
			if k, _, err := marks.Get(tx, record.Key(x.op.Mark)); err != nil || k.File == x.file {
				mine = err == nil
				return err
			}
		}
		if x.op.Origin == "" {
			return nil
		}
		was, noted, err := files.Get(tx, x.writtenKey())
		mine = noted && was == writtenAs(there)
		return err
	})
	return mine, err
}

// intend notes, under the operation's mark, which file is about to be written:
// after a crash the same operation finds its own file there, not another's.
func (x *execution) intend(tx *audit.Tx) error {
	if x.op.Mark == "" || x.file == "" {
		return nil
	}
	return marks.Put(tx, record.Key(x.op.Mark), marked{File: x.file})
}

// left is how the operation left its workflow's file; nil when there is nothing to
// note.
func (x *execution) left() *written {
	if x.op.Origin == "" || x.file == "" {
		return nil
	}
	dir, path, _ := strings.Cut(x.file, "\x00")
	there := fileAt(dir, path)
	if there == nil {
		return nil
	}
	as := writtenAs(there)
	return &as
}
