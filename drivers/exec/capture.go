package exec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/pipe"
)

// Bounds of what is kept of a task's output.
const (
	// maxInline is what a result carries of both streams together.
	maxInline = 1 << 20
	// stderrShare of it can't be used up by stdout, so that a flood does not
	// push the reason of a failure out of the result.
	stderrShare = 64 << 10
	// maxSpill bounds each spill file: a command that never stops writing
	// must not fill the disk.
	maxSpill = 1 << 30
)

// capture keeps the output of one run: inline as long as it is small, in
// files when it is not. Each stream that outgrows its share has a file of
// its own, with every byte from the first on.
type capture struct {
	mu      sync.Mutex
	streams [2]stream // stdout, stderr
}

type stream struct {
	path   string // where to spill; "" spills nowhere
	inline []byte
	total  int64
	file   *os.File
	kept   int64 // bytes in the file
	sum    hash.Hash
	full   bool  // has outgrown inline
	err    error // why the file is not complete
}

func newCapture(spill string) *capture {
	c := &capture{}
	if spill != "" {
		c.streams[0].path, c.streams[1].path = spill, spill+".stderr"
	}
	return c
}

var errSpillFull = errors.New("the spill file reached its limit of 1 GiB")

func (c *capture) write(n int, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.streams[n]
	s.total += int64(len(p))
	room := maxInline - len(c.streams[0].inline) - len(c.streams[1].inline)
	if n == 0 {
		room = min(room, maxInline-stderrShare-len(s.inline))
	}
	if !s.full {
		keep := max(0, min(len(p), room))
		s.inline = append(s.inline, p[:keep]...)
		if keep == len(p) {
			return
		}
		s.full = true
		s.open()
		s.spill(s.inline[:len(s.inline)-keep])
	}
	s.spill(p)
}

func (s *stream) open() {
	if s.path == "" {
		return
	}
	// An earlier attempt's file goes: it may be open still, or have another mode.
	if err := unix.Unlink(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.err = &os.PathError{Op: "replace", Path: s.path, Err: err}
		return
	}
	if s.err = os.MkdirAll(filepath.Dir(s.path), 0o700); s.err != nil {
		return
	}
	s.sum = sha256.New()
	s.file, s.err = os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (s *stream) spill(p []byte) {
	if s.file == nil || s.err != nil {
		return
	}
	if room := maxSpill - s.kept; int64(len(p)) > room {
		p, s.err = p[:room], errSpillFull
	}
	n, err := s.file.Write(p)
	s.kept += int64(n)
	s.sum.Write(p[:n])
	if err != nil {
		s.err = err
	}
}

// close ends the files; what arrives later is counted only.
func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.streams {
		s := &c.streams[i]
		if s.file != nil {
			if err := s.file.Close(); err != nil && s.err == nil {
				s.err = err
			}
			s.file = nil
		}
	}
}

// report fills in what a result says about the output.
func (c *capture) report(r *runOutput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, errs := &c.streams[0], &c.streams[1]
	r.Stdout, r.Stderr = pipe.Text(out.inline), pipe.Text(errs.inline)
	if out.full {
		r.StdoutTruncated, r.StdoutBytes, r.Spill = true, out.total, out.where()
		r.SpillSHA256 = out.digest()
	}
	if errs.full {
		r.StderrTruncated, r.StderrBytes, r.SpillStderr = true, errs.total, errs.where()
		r.SpillStderrSHA256 = errs.digest()
	}
	for _, s := range []*stream{out, errs} {
		if s.err != nil && r.SpillError == "" {
			r.SpillError = s.err.Error()
		}
	}
}

// where is the file's path, "" when nothing is in it.
func (s *stream) where() string {
	if s.kept == 0 {
		return ""
	}
	return s.path
}

// digest is that of the file's content, in hex, "" when nothing is in it.
func (s *stream) digest() string {
	if s.kept == 0 {
		return ""
	}
	return hex.EncodeToString(s.sum.Sum(nil))
}
