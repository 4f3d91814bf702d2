package store

import (
	"fmt"
	"os"
)

// ahead keeps the file written with zeros for some way past its used part. A
// sync of pages on blocks that were written before is one of data alone; pages
// in a hole make the file system commit its journal too, for most of the
// sync's time.
type ahead struct {
	end   int64 // of what is known to be written
	zeros []byte
	done  chan error // one slot; nil while nothing is under way
}

const (
	aheadLeast = 512 << 10 // what most commits stay within
	aheadMost  = 2 << 20   // of writing that is over before most commits are
)

// start writes zeros, beside the updates of a commit, when little is left past
// the used part of the file. No page of any commit is there before wait has
// returned.
func (a *ahead) start(f *os.File, used int64) {
	a.end = max(a.end, used)
	if a.end-used >= aheadLeast {
		return
	}
	a.done = make(chan error, 1)
	go func() { a.done <- a.keep(f, used) }()
}

// wait ends what start began.
func (a *ahead) wait() error {
	if a.done == nil {
		return nil
	}
	err := <-a.done
	a.done = nil
	return err
}

// keep writes zeros. Without room for at least aheadLeast of them it fails with
// what the system says of that (lacksRoom); whether the commit under way still
// fits is its own affair. What was written before is the reserve then.
func (a *ahead) keep(f *os.File, used int64) error {
	if a.zeros == nil {
		a.zeros = make([]byte, aheadLeast)
	}
	was, lack := a.end, error(nil)
	for to := used + min(growth(used), aheadMost); a.end < to; {
		n, err := f.WriteAt(a.zeros[:min(int64(len(a.zeros)), to-a.end)], a.end)
		a.end += int64(n)
		if err != nil {
			lack = err
			break
		}
	}
	if err := f.Sync(); err != nil {
		a.end = was
		return fmt.Errorf("grow the file: %w", err)
	}
	if a.end-used < aheadLeast && lacksRoom(lack) {
		return fmt.Errorf("grow the file: %w", lack)
	}
	return nil
}
