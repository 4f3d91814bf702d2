package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Bounds of a repository that is read.
const (
	maxSegment  = segmentBytes + 2*jsonl.MaxLine
	maxSegments = 5_000_000
)

// Import implements dag.Format. It works on a clone: git promises to be safe
// with the settings of a strange repository for that alone.
func (Format) Import(ctx context.Context, src string, each func(dag.Record) error) (m dag.Manifest, err error) {
	full, err := filepath.Abs(src)
	if err != nil {
		return m, err
	}
	if _, err := os.ReadDir(full); err != nil {
		return m, err
	}
	temp, err := os.MkdirTemp("", "swarmdeck-dag-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if _, err := run(ctx, temp, nil, "clone", "--quiet", "--bare", "--no-local", "--template=", "--", full, "clone"); err != nil {
		if core.AsError(err).Code == core.Unavailable || ctx.Err() != nil {
			return m, err
		}
		return m, core.Errorf(core.InvalidInput, "repository: %v", err).With("field", "repository")
	}
	r := &reader{dir: filepath.Join(temp, "clone")}
	if m, err = r.manifest(ctx); err != nil {
		return m, err
	}
	if r.lines, err = os.Create(filepath.Join(temp, "lines")); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, r.lines.Close()) }()
	segments, err := r.segments(ctx)
	if err != nil {
		return m, err
	}
	if err := r.gather(ctx, segments); err != nil {
		return m, err
	}
	return m, r.merge(ctx, each)
}

// reader reads a repository of ours.
type reader struct {
	dir   string
	lines *os.File // all lines, as the segments had them
	index []place
}

// place is where a line is.
type place struct {
	pos  uint64
	at   int64
	size int
}

func (r *reader) manifest(ctx context.Context) (m dag.Manifest, err error) {
	size, err := run(ctx, r.dir, nil, "cat-file", "-s", recordBranch+":"+manifestFile)
	if err != nil {
		return m, core.Errorf(core.InvalidInput, "repository: has no %s on the branch record; is it a record that was exported? %v", manifestFile, err).With("field", "repository")
	}
	if len(bytes.TrimSpace(size)) > 4 {
		return m, core.Errorf(core.InvalidInput, "manifest: %s bytes are too many", bytes.TrimSpace(size)).With("field", "manifest")
	}
	data, err := run(ctx, r.dir, nil, "cat-file", "blob", recordBranch+":"+manifestFile)
	if err != nil {
		return m, err
	}
	return m, core.Decode(data, &m)
}

// segments lists the files of all branches, each content once. The branch
// record has all of them, and each is on another branch too.
func (r *reader) segments(ctx context.Context) (blobs []string, err error) {
	refs, err := run(ctx, r.dir, nil, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/")
	if err != nil {
		return nil, err
	}
	all, own := map[string]string{}, map[string]string{} // file → blob, on record and on the others
	seen := map[string]bool{}
	for line := range strings.Lines(string(refs)) {
		tip, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		into := own
		if ref == recordBranch {
			into = all
		}
		if err := r.tree(ctx, tip, into); err != nil {
			return nil, err
		}
		for _, blob := range into {
			if !seen[blob] {
				seen[blob] = true
				blobs = append(blobs, blob)
			}
		}
		if len(blobs) > maxSegments {
			return nil, core.Errorf(core.InvalidInput, "repository: more than %d segments", maxSegments).With("field", "repository")
		}
	}
	for _, lack := range []struct{ of, in map[string]string }{{all, own}, {own, all}} {
		for file := range lack.of {
			if lack.in[file] == "" {
				return nil, core.Errorf(core.InvalidInput, "segment %.200q: is on the branch record or on its own, not on both: it was added or removed", file).With("field", "segment")
			}
		}
	}
	return blobs, nil
}

// tree lists the segments of one branch.
func (r *reader) tree(ctx context.Context, tip string, into map[string]string) error {
	out, err := run(ctx, r.dir, nil, "ls-tree", "-r", "-z", tip, "--", segmentDir)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		info, file, ok := strings.Cut(line, "\t")
		if parts := strings.Fields(info); ok && len(parts) == 3 && parts[1] == "blob" {
			into[file] = parts[2]
		}
	}
	return nil
}

// gather copies the lines of all segments, and notes where each is.
func (r *reader) gather(ctx context.Context, blobs []string) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := command(ctx, r.dir, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(blobs, "\n") + "\n")
	if len(blobs) == 0 {
		return nil
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	in, out := bufio.NewReaderSize(pipe, 1<<18), bufio.NewWriterSize(r.lines, 1<<18)
	at := int64(0)
	for range blobs {
		if at, err = r.blob(in, out, at); err != nil {
			break
		}
	}
	if err != nil {
		stop() // it would wait for us to read on
	}
	if ended := cmd.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("git cat-file: %w", ended)
	}
	if err == nil {
		err = out.Flush()
	}
	return err
}

// blob copies one segment.
func (r *reader) blob(in *bufio.Reader, out *bufio.Writer, at int64) (int64, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return at, fmt.Errorf("read from git: %w", err)
	}
	var id, kind string
	var size int64
	if n, _ := fmt.Sscanf(head, "%s %s %d", &id, &kind, &size); n != 3 || kind != "blob" || len(id) < 40 {
		return at, core.Errorf(core.InvalidInput, "segment: git says %.100q of it", strings.TrimSpace(head)).With("field", "segment")
	}
	if _, err := hex.DecodeString(id); err != nil || size > maxSegment {
		return at, core.Errorf(core.InvalidInput, "segment %.64s: %d bytes are too many; allowed: %d", id, size, maxSegment).With("field", "segment")
	}
	data := make([]byte, size+1) // a line break follows
	if _, err := io.ReadFull(in, data); err != nil {
		return at, fmt.Errorf("read from git: %w", err)
	}
	for line := range bytes.Lines(data[:size]) {
		pos, err := posOf(line)
		if err != nil {
			return at, err
		}
		r.index = append(r.index, place{pos, at, len(line)})
		if _, err := out.Write(line); err != nil {
			return at, err
		}
		at += int64(len(line))
	}
	return at, nil
}

// posOf is where a line stands in the record. All else of it is looked at when
// it is its turn.
func posOf(line []byte) (uint64, error) {
	var l struct {
		Pos uint64 `json:"pos"`
	}
	if err := core.CheckObject("line", line, jsonl.MaxLine); err != nil {
		return 0, err
	}
	if err := core.DecodeStored(line, &l); err != nil {
		return 0, core.Errorf(core.InvalidInput, "line: %v", err).With("field", "line")
	}
	return l.Pos, nil
}

// merge hands the lines over in the record's order.
func (r *reader) merge(ctx context.Context, each func(dag.Record) error) error {
	slices.SortFunc(r.index, func(a, b place) int { return cmp.Compare(a.pos, b.pos) })
	var buf, before []byte
	for i, p := range r.index {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf = slices.Grow(buf[:0], p.size)[:p.size]
		if _, err := r.lines.ReadAt(buf, p.at); err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
		if i > 0 && p.pos == r.index[i-1].pos && bytes.Equal(buf, before) {
			continue // the same in two contents of a segment, of which one was changed elsewhere
		}
		before = append(before[:0], buf...)
		rec, end, err := jsonl.Decode(buf)
		if err == nil && end != nil {
			err = core.Errorf(core.InvalidInput, "line: an end stands in a segment").With("field", "line")
		}
		if err == nil {
			err = each(rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
