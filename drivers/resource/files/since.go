package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/dag"
)

// Bounds of a look for what changed. It is taken around each tool call.
const (
	sinceEntries = 50_000   // of a tree: one that has more is not looked through
	sinceNamed   = 1000     // files by name; more are counted
	sinceRead    = 64 << 20 // bytes of all of them together that are read for their digests

	// tick is how far the clock of a file system may be behind: it moves with the
	// kernel's timer.
	tick = 10 * time.Millisecond
)

// Since lists the regular files at or below a place that were written, made or put there
// since a time, and counts those past the first thousand. It goes by the time of a file's
// inode, which no program sets. Of a directory that was moved to where it is, all files
// are new. What git keeps in .git is left out, and the engine's own files are.
//
// A file's time may be up to 10 ms before that of its change, so it can be among what is
// since twice. An error says that the place can't be looked through.
func (d *Driver) Since(ctx context.Context, place string, since time.Time) (changed []dag.File, more int, err error) {
	place, err = filepath.EvalSymlinks(place)
	if os.IsNotExist(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	w := &walker{
		ctx: ctx, limits: Limits{Files: sinceEntries, Bytes: 1 << 62, Depth: DefaultLimits().Depth}, own: d.opt.Own, among: d.own.Among(),
		all: true, skip: func(name string) bool { return name == ".git" },
	}
	all, err := w.walk(place)
	if err != nil {
		return nil, 0, err
	}
	from := since.Add(-tick).UnixNano()
	moved := map[string]bool{} // directories that are new where they are, with all below
	left := int64(sinceRead)
	for _, e := range all {
		late, below := e.at.Ctime >= from, moved[parent(e.Path)]
		if e.Kind == directory {
			moved[e.Path] = e.Path != "." && (below || late && e.Mtime < from)
		}
		if e.Kind != regular || !late && !below {
			continue
		}
		if len(changed) == sinceNamed {
			more++
			continue
		}
		f := dag.File{Path: filepath.Join(place, e.Path), Size: e.Size, At: time.Unix(0, e.at.Ctime)}
		if e.Size <= left && ctx.Err() == nil {
			left -= e.Size
			f.SHA256 = digestOf(f.Path, e.Size)
		}
		changed = append(changed, f)
	}
	return changed, more, nil
}

// digestOf is the digest of a file's first bytes, "" of one that can't be read.
func digestOf(path string, size int64) string {
	fd, err := openBeneath(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, size)); err != nil || n != size {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
