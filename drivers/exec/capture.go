package exec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
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
	s.err = cmp.Or(err, s.err)
}

// close ends the files; what arrives later is counted only.
func (c *capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.streams {
		s := &c.streams[i]
		if s.file != nil {
			s.err, s.file = cmp.Or(s.err, s.file.Close()), nil
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
		r.StdoutTruncated, r.StdoutBytes = true, out.total
		r.Spill, r.SpillSHA256 = out.spilled()
	}
	if errs.full {
		r.StderrTruncated, r.StderrBytes = true, errs.total
		r.SpillStderr, r.SpillStderrSHA256 = errs.spilled()
	}
	for _, s := range []*stream{out, errs} {
		if s.err != nil && r.SpillError == "" {
			r.SpillError = s.err.Error()
		}
	}
}

// spilled is the file's path and the digest of its content, in hex; "" when nothing is in it.
func (s *stream) spilled() (path, digest string) {
	if s.kept == 0 {
		return "", ""
	}
	return s.path, hex.EncodeToString(s.sum.Sum(nil))
}

// Bounds of a task's log.
const (
	maxLogLine  = 64 << 10
	maxLogBytes = 16 << 20
	maxLogLines = 100_000
	maxTail     = 1000 // lines of its end
	maxTailSize = 1 << 20
)

// taskLog passes lines of both streams on, one at a time, up to the bounds, and
// the last ones once there are no more.
type taskLog struct {
	mu   sync.Mutex
	out  func(level, line string)
	log  pipe.Log[logged]
	rest string // where what is past the bounds can be found
}

type logged struct{ level, line string }

func newTaskLog(out func(level, line string), rest string) *taskLog {
	tail := pipe.Tail[logged]{Most: maxTail, Bytes: maxTailSize}
	return &taskLog{out: out, rest: rest, log: pipe.Log[logged]{Lines: maxLogLines, Bytes: maxLogBytes, Tail: tail}}
}

func (l *taskLog) line(level string, line []byte, cut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := pipe.Marked(line, cut)
	passes, first := l.log.Passes(logged{level, s}, len(s))
	if first {
		l.out("WARN", fmt.Sprintf("log is cut here: it reached its limit of %d lines or %d MiB; %s; its last lines follow at the end",
			maxLogLines, maxLogBytes>>20, l.rest))
	}
	if passes {
		l.out(level, s)
	}
}

// end passes on the last lines of a log that was cut.
func (l *taskLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, gone := l.log.Tail.Take()
	if gone > 0 {
		l.out("WARN", fmt.Sprintf("%d lines are left out here", gone))
	}
	for _, x := range lines {
		l.out(x.level, x.line)
	}
}

// maxFormer is how many lines of output Former gives, the last ones.
const maxFormer = 900

// Former tells in lines of a log how a run ended whose engine had died, and what
// of its output that engine had not read. Their source names the very run: no two
// runs have the same.
func Former(k cell.Kept) []task.LogLine {
	var said []task.LogLine
	add := func(level, text string) { said = append(said, task.LogLine{Level: level, Message: text}) }
	split := func(data []byte, each func(line []byte, cut int)) {
		lines := pipe.Splitter{Max: maxLogLine, Emit: each}
		_, _ = lines.Write(data)
		lines.Close()
	}
	split(k.Stdout, func(line []byte, cut int) {
		e, err := parse(line)
		if k.Whose.Task == "" && cut == 0 && err == nil && (e.Type == "log" || e.Type == "message") {
			add(e.Level, core.ClipTo(e.Text, maxLogLine))
			return
		}
		add("INFO", pipe.Marked(line, cut))
	})
	split(k.Stderr, func(line []byte, cut int) { add("WARN", pipe.Marked(line, cut)) })
	over := max(0, len(said)-maxFormer)
	head := "the engine died at " + k.Lost.UTC().Format(time.RFC3339) + " while this ran"
	switch {
	case over > 0 || k.Cut:
		head += fmt.Sprintf("; the last %d lines that it had not read:", len(said)-over)
	case len(said) > 0:
		head += fmt.Sprintf("; the %d lines that it had not read:", len(said))
	default:
		head += ", and had read all that it wrote"
	}
	lines := append([]task.LogLine{{Level: "WARN", Message: head}}, said[over:]...)
	lines = append(lines, task.LogLine{Level: "WARN", Message: "of the former engine's run: it " + k.Outcome()})
	for i := range lines {
		lines[i].Source = "former engine, run " + k.Name
	}
	return lines
}
