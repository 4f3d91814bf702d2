package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"go.etcd.io/bbolt"
)

// Report is what a check found. It doubles as full statistics.
type Report struct {
	Path      string        `json:"path"`
	OK        bool          `json:"ok"`
	Size      int64         `json:"size"`       // bytes of the file
	PageSize  int64         `json:"page_size"`  // bytes
	Pages     int64         `json:"pages"`      // up to the high water mark
	FreePages int64         `json:"free_pages"` // of these
	Layout    uint64        `json:"layout"`     // version of the file's layout
	Schema    uint64        `json:"schema"`     // migrations it has been through
	Epoch     uint64        `json:"epoch"`      // writable opens so far
	Tenants   []string      `json:"tenants"`
	Buckets   []BucketStats `json:"buckets"`
	Found     int           `json:"found"`              // number of problems
	Problems  []string      `json:"problems,omitempty"` // the first 100
}

// BucketStats counts one bucket. Tenant is "" for the file's own records.
type BucketStats struct {
	Tenant  string `json:"tenant_id,omitempty"`
	Bucket  Bucket `json:"bucket"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"` // keys and values
	Pages   int64  `json:"pages"` // 0 for a small bucket kept inside another's page
}

// Err is nil for a good report, else an ErrUnusable that names the first
// problem.
func (r *Report) Err() error {
	if r.OK {
		return nil
	}
	return fmt.Errorf("%w: %d problems, the first: %s", ErrUnusable, r.Found, r.Problems[0])
}

// Check reads the whole data file at path, verifies every page, every
// record's checksum and bbolt's own invariants, and writes nothing. Damage is
// told in the report; the error is for a file that can't be read at all
// (ErrUnusable), is in use (ErrLocked), or the end of ctx.
func Check(ctx context.Context, path string) (*Report, error) {
	r, err := check(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("check data file %s: %w", path, err)
	}
	return r, nil
}

func check(ctx context.Context, path string) (*Report, error) {
	f, err := lockFile(path, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := surveyFile(ctx, f)
	if err != nil {
		return nil, err
	}
	r.Path = path
	if r.Found == 0 {
		// Only now: bbolt's check would follow a damaged page anywhere.
		db, _, err := mapBolt(path, true, r.Size)
		if err != nil {
			return nil, err
		}
		defer db.Close()
		if err := db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				r.Found++
				if len(r.Problems) < maxProblems {
					r.Problems = append(r.Problems, told(err))
				}
			}
			return ctx.Err()
		}); err != nil {
			return nil, err
		}
	}
	r.OK = r.Found == 0
	return r, nil
}

// Check is the package's Check for the open store, in one view of it: it
// holds old pages as long as it runs.
func (db *DB) Check(ctx context.Context) (*Report, error) {
	var r *Report
	err := db.snapshot(ctx, func(tx *bbolt.Tx, m fileMeta) (err error) {
		r, err = surveyPages(ctx, db.file, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check data file %s: %w", db.path, err)
	}
	r.Path, r.OK = db.path, r.Found == 0
	return r, nil
}

func surveyFile(ctx context.Context, f *os.File) (*Report, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	m, err := findMeta(f, info.Size())
	if err != nil {
		return nil, err
	}
	return surveyPages(ctx, f, m)
}

func surveyPages(ctx context.Context, f io.ReaderAt, m fileMeta) (*Report, error) {
	s := survey{ctx: ctx, f: f, m: m, report: &Report{Size: m.size, PageSize: m.pageSize, Pages: m.pages}}
	if err := s.run(); err != nil {
		return nil, err
	}
	if s.report.Found == 0 && s.report.Layout != layout && s.report.Layout != layoutMarked {
		s.problem("%s", otherLayout(s.report.Layout))
	}
	return s.report, nil
}

// told is what bbolt's check found. It panics where a page is damaged.
func told(err error) string {
	text, damaged := strings.CutPrefix(err.Error(), "panic: ")
	if !damaged {
		return "bbolt: " + text
	}
	return "damaged page: " + strings.TrimPrefix(text, "assertion failed: ")
}

// snapshot runs fn in a read transaction together with the meta page that the
// transaction stands on.
func (db *DB) snapshot(ctx context.Context, fn func(*bbolt.Tx, fileMeta) error) error {
	db.swap.RLock() // the pages are those of one file
	defer db.swap.RUnlock()
	for range 100 { // a busy writer may replace the meta page in between
		met := false
		err := db.read(ctx, func(tx *bbolt.Tx) error {
			info, err := db.file.Stat()
			if err != nil {
				return fmt.Errorf("%w: %w", ErrUnusable, err)
			}
			m, ok := metaOf(db.file, uint64(tx.ID()))
			if !ok {
				return nil
			}
			met, m.size = true, info.Size()
			return fn(tx, m)
		})
		if met || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: its meta pages keep changing", ErrUnusable)
}

// metaOf finds the meta page of one transaction.
func metaOf(f io.ReaderAt, txid uint64) (fileMeta, bool) {
	m, err := findMeta(f, 1<<62)
	if err != nil {
		return m, false
	}
	for i := range int64(2) {
		if m, ok := metaAt(f, i*m.pageSize); ok && m.txid == txid {
			return m, true
		}
	}
	return fileMeta{}, false
}
