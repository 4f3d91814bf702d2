package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Bounds of a repository that is read.
const (
	maxSegment  = segmentBytes + 2*jsonl.MaxLine
	maxSegments = 1_000_000
	maxEntries  = 50_000_000 // files of all branches, of which most are on several
	maxManifest = 9999
)

// Import implements dag.Format. The objects are copied into a repository of
// ours, so that git never sees the settings of the one that is read.
func (f Format) Import(ctx context.Context, src string, each func(dag.Record) error) (m dag.Manifest, err error) {
	temp, err := os.MkdirTemp("", "swarmdeck-dag-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	r := &reader{git: f.Git, dir: filepath.Join(temp, "copy")}
	if r.tips, err = copyOf(ctx, f.Git, src, r.dir); err != nil {
		return m, err
	}
	if m, err = r.manifest(ctx); err != nil {
		return m, err
	}
	for path, into := range map[string]**os.File{"blobs": &r.blobs, "lines": &r.lines} {
		file, err := os.Create(filepath.Join(temp, path))
		if err != nil {
			return m, err
		}
		defer file.Close()
		*into = file
	}
	if err := r.segments(ctx); err != nil {
		return m, err
	}
	if err := r.gather(ctx); err != nil {
		return m, err
	}
	return m, r.merge(each)
}

// reader reads a repository of ours.
type reader struct {
	git   git.Git
	dir   string
	tips  map[string]string // branches
	blobs *os.File          // the segments' objects, one a line, each once
	n     int               // how many
	lines *os.File          // all lines, as the segments had them
	index []place
}

// place is where a line is.
type place struct {
	pos  uint64
	at   int64
	size int
}

// call is a git command on the copy.
func (r *reader) call(args ...string) git.Call {
	return git.Call{GitDir: r.dir, Settings: []string{"core.bigFileThreshold=16m"}, Args: args}
}

func (r *reader) manifest(ctx context.Context) (m dag.Manifest, err error) {
	at := r.tips[recordBranch] + ":" + manifestFile
	text, err := r.git.Run(ctx, r.call("cat-file", "-s", at))
	if err != nil {
		return m, core.Errorf(core.InvalidInput, "repository: has no %s on the branch record; is it a record that was exported? %v", manifestFile, err).With("field", "repository")
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || size > maxManifest {
		return m, core.Errorf(core.InvalidInput, "manifest: %.20q bytes are too many; allowed: %d", bytes.TrimSpace(text), maxManifest).With("field", "manifest")
	}
	data, err := r.git.Run(ctx, r.call("cat-file", "blob", at))
	if err != nil {
		return m, err
	}
	return m, core.Decode(data, &m)
}

// On which branches a segment was seen.
const (
	onRecord = 1 << iota
	onAnother
)

// short is a digest that tells apart what one repository holds: of a file's
// name, or of an object.
type short [16]byte

// listing is what the branches list, in as little memory as can be: a tree of a
// few bytes can hold millions of names.
type listing struct {
	files   map[short]byte // where each file was seen
	blobs   map[short]bool
	entries int
	out     *bufio.Writer
}

// segments lists the files of all branches, each content once. The branch
// record has all of them, and each is on another branch too.
func (r *reader) segments(ctx context.Context) error {
	l := &listing{files: map[short]byte{}, blobs: map[short]bool{}, out: bufio.NewWriter(r.blobs)}
	for _, ref := range slices.Sorted(maps.Keys(r.tips)) {
		where := byte(onAnother)
		if ref == recordBranch {
			where = onRecord
		}
		err := r.git.Read(ctx, r.call("ls-tree", "-r", "-z", r.tips[ref], "--", segmentDir), func(out io.Reader) error {
			return l.branch(out, where)
		})
		if err != nil {
			return err
		}
	}
	for _, where := range l.files {
		if where != onRecord|onAnother {
			return core.Errorf(core.InvalidInput, "segment: one is on the branch record or on its own, not on both: it was added or removed").With("field", "segment")
		}
	}
	r.n = len(l.blobs)
	return l.out.Flush()
}

// branch takes in what ls-tree prints of one branch.
func (l *listing) branch(out io.Reader, where byte) error {
	in := bufio.NewScanner(out)
	in.Buffer(nil, 64<<10)
	in.Split(func(data []byte, end bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if end && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	for in.Scan() {
		if err := l.entry(in.Bytes(), where); err != nil {
			return err
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return core.Errorf(core.InvalidInput, "segment: a file's name is too long").With("field", "segment")
	}
	return in.Err()
}

func (l *listing) entry(line []byte, where byte) error {
	if l.entries++; l.entries > maxEntries {
		return core.Errorf(core.InvalidInput, "repository: its branches hold more than %d files", maxEntries).With("field", "repository")
	}
	info, file, ok := bytes.Cut(line, []byte{'\t'})
	parts := bytes.Fields(info)
	if !ok || len(parts) != 3 || string(parts[1]) != "blob" {
		return nil
	}
	sum := sha256.Sum256(file)
	l.files[short(sum[:16])] |= where
	sum = sha256.Sum256(parts[2])
	if blob := short(sum[:16]); !l.blobs[blob] {
		l.blobs[blob] = true
		l.out.Write(parts[2])
		l.out.WriteByte('\n') // the writer keeps the first error of all
	}
	if len(l.files) > maxSegments {
		return core.Errorf(core.InvalidInput, "repository: more than %d segments", maxSegments).With("field", "repository")
	}
	return nil
}

// gather copies the lines of all segments, and notes where each is.
func (r *reader) gather(ctx context.Context) error {
	if _, err := r.blobs.Seek(0, io.SeekStart); err != nil {
		return err
	}
	call := r.call("cat-file", "--batch")
	call.In = r.blobs
	return r.git.Read(ctx, call, func(pipe io.Reader) (err error) {
		in, out := bufio.NewReaderSize(pipe, 1<<18), bufio.NewWriterSize(r.lines, 1<<18)
		at := int64(0)
		for range r.n {
			if at, err = r.blob(in, out, at); err != nil {
				return err
			}
		}
		return out.Flush()
	})
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
func (r *reader) merge(each func(dag.Record) error) error {
	core.Sort(r.index, func(a, b place) int { return cmp.Compare(a.pos, b.pos) })
	var buf, before []byte
	for i, p := range r.index {
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
