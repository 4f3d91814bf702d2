package cell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Kept is what an init kept of a run whose engine died.
type Kept struct {
	Name  string    `json:"-"`                                                         // of this very run, for ever: 12 characters
	Run   string    `json:"run" allow:"at most 4096 bytes without control characters"` // INSTANCE/RUN
	Whose Whose     `json:"whose"`
	Tasks []string  `json:"tasks,omitempty" allow:"at most 64"` // that it was at work on; of a run that is no task's own
	Lost  time.Time `json:"lost"`                               // when the engine had gone
	// How it ended: one of the below, and when; Code and Signal as in Exit, with
	// EndedItself.
	How    string         `json:"how,omitempty" allow:"none or exit, grace, return"`
	Ended  time.Time      `json:"ended,omitzero"`
	Code   int            `json:"code,omitzero" allow:"0-255"`
	Signal syscall.Signal `json:"signal,omitzero" allow:"0-64"`
	// What it had written and the engine not read: the end of it, if there was more.
	Stdout []byte `json:"stdout,omitempty" allow:"at most 1048576 bytes"`
	Stderr []byte `json:"stderr,omitempty" allow:"at most 1048576 bytes"`
	Cut    bool   `json:"cut,omitzero"` // there was more
}

// How a run ended whose engine had died.
const (
	EndedItself   = "exit"   // its first process exited, or a signal ended it
	EndedGrace    = "grace"  // it was ended after OrphanGrace
	EndedByReturn = "return" // it was ended when the next engine came
	EndedThere    = "there"  // it went on on its host, and was ended when the next engine came
)

// Outcome says how it ended: "exited with status 1".
func (k Kept) Outcome() string {
	at := k.Ended.UTC().Format(time.RFC3339)
	switch k.How {
	case EndedItself:
		return Exit{Code: k.Code, Signal: k.Signal}.Describe() + " at " + at
	case EndedGrace:
		return fmt.Sprintf("was frozen, and ended at %s because no engine had come back within %v", at, OrphanGrace)
	case EndedThere:
		return "was ended on its host at " + at + " for the engine that came"
	case EndedByReturn:
		return "was frozen, and ended at " + at + " by the engine that came back"
	}
	return "was frozen; nobody knows how it ended, only that nothing of it is left"
}

// Bounds of what is kept.
const (
	keptName    = 12 // characters
	keptSuffix  = ".json"
	keptHalf    = ".part" // of a file in the making
	maxKept     = 1 << 20 // bytes of one stream
	maxKeptFile = 4 << 20
)

// Collect hands what inits have kept to take, the oldest first, and removes what
// that returns no error for. Call it after Sweep, when no init of a former engine
// is left. What can't be read is removed, and named in the error; the rest goes on.
func (s *Supervisor) Collect(take func(Kept) error) error {
	if s.opt.Keep == "" {
		return nil
	}
	entries, err := os.ReadDir(s.opt.Keep)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for what runs have left: %w", err)
	}
	age := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			age[e.Name()] = info.ModTime()
		}
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return age[a.Name()].Compare(age[b.Name()]) })
	var errs []error
	for _, e := range entries {
		path := filepath.Join(s.opt.Keep, e.Name())
		if strings.HasSuffix(e.Name(), keptHalf) {
			errs = append(errs, os.Remove(path))
			continue
		}
		name, is := strings.CutSuffix(e.Name(), keptSuffix)
		if !is || len(name) != keptName {
			continue
		}
		k, err := readKept(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("read what a run has left: %w", err))
		} else {
			k.Name = name
			if err := take(k); err != nil {
				errs = append(errs, fmt.Errorf("take over what run %s has left: %w", k.Run, err))
				continue
			}
		}
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

func readKept(path string) (k Kept, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return k, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return k, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeptFile {
		return k, core.Invalid(path, fmt.Sprintf("%s of %d bytes", info.Mode().Type(), info.Size()), fmt.Sprintf("a file of at most %d bytes", maxKeptFile))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeptFile))
	if err != nil {
		return k, err
	}
	if k, err = decodeKept(data); err != nil {
		return k, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// decodeKept reads a file of an init's, which a crash of the machine can have
// spoilt.
func decodeKept(data []byte) (k Kept, err error) {
	if err := core.Decode(data, &k); err != nil {
		return Kept{}, err
	}
	return k, k.check()
}

func (k Kept) check() error {
	errs := []error{bound.Check(k), bound.CheckIn("whose.", k.Whose)}
	for _, t := range k.Tasks {
		errs = append(errs, bound.CheckIn("tasks.", Whose{Task: t}))
	}
	if k.Lost.IsZero() {
		errs = append(errs, core.Invalid("lost", k.Lost, "a time"))
	}
	if (k.How == "") != k.Ended.IsZero() {
		errs = append(errs, core.Invalid("ended", k.Ended, "a time if how is given, else nothing"))
	}
	return errors.Join(errs...)
}
