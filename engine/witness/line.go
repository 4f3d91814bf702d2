package witness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Bounds of what is read back.
const (
	maxLine = 128 << 10 // bytes of a line
	maxFile = 4 << 30   // bytes of a file
)

// Line is one checkpoint as a file keeps it and a command gets it: a JSON
// object that ends with a line break. A note alone would not tell where the
// next one begins once a line is cut short.
type Line struct {
	At         time.Time `json:"at"` // when it was published
	Checkpoint string    `json:"checkpoint"`
}

// Encode is the line with its line break.
func (l Line) Encode() []byte { return append(core.MustEncode(l), '\n') }

// begin is how each line begins.
const begin = `{"at":"`

// Read reads the checkpoints of a file back, whoever wrote it. A line that was
// cut short by a crash is passed over; any other that is none ends it with an
// error that names the line.
func Read(r io.Reader) iter.Seq2[audit.Kept, error] {
	return func(yield func(audit.Kept, error) bool) {
		limited := &io.LimitedReader{R: r, N: maxFile}
		lines := bufio.NewScanner(limited)
		lines.Buffer(nil, maxLine)
		n := 0
		for lines.Scan() {
			n++
			line := lines.Bytes()
			if len(line) == 0 {
				continue
			}
			var l Line
			if err := core.Decode(line, &l); err != nil {
				if cut(line) {
					continue
				}
				yield(audit.Kept{}, core.Errorf(core.InvalidInput, "witness: line %d is no checkpoint: want {\"at\":TIME,\"checkpoint\":NOTE}", n).With("field", "witness"))
				return
			}
			if !yield(audit.Kept{Where: fmt.Sprintf("line %d", n), Note: []byte(l.Checkpoint)}, nil) {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(audit.Kept{}, core.Errorf(core.InvalidInput, "witness: line %d is longer than %d bytes", n+1, maxLine).With("field", "witness"))
		case err != nil:
			yield(audit.Kept{}, fmt.Errorf("witness: %w", err))
		case limited.N == 0:
			yield(audit.Kept{}, core.Errorf(core.InvalidInput, "witness: larger than %d bytes", int64(maxFile)).With("field", "witness"))
		}
	}
}

// cut reports a line that lacks its end. No checkpoint has a } in it.
func cut(line []byte) bool {
	return (bytes.HasPrefix(line, []byte(begin)) || bytes.HasPrefix([]byte(begin), line)) && !bytes.Contains(line, []byte("}"))
}
