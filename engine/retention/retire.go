package retention

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/safeopen"
)

// How audit events leave. Each piece that leaves adds an event, so that pieces
// of few events are worth it only when these are overdue.
const (
	fewEvents   = 256
	overdue     = time.Hour
	segmentSize = 50_000 // events of one exported file at most
)

// retire lets a piece of the audit log leave.
func (s *Service) retire(ctx context.Context, by core.Caller, limit record.Limit, _ []byte) ([]byte, error) {
	age := audit.Age{Before: limit.Before, Keep: uint64(limit.Keep)}
	ledger := s.opt.Ledger
	first, newest, err := ledger.Retirable(ctx, by.Tenant, age)
	if err == nil && newest >= first && newest-first+1 < fewEvents {
		if limit.Before.IsZero() {
			return nil, nil
		}
		if _, newest, err = ledger.Retirable(ctx, by.Tenant, audit.Age{Before: limit.Before.Add(-overdue)}); err != nil || newest < first {
			return nil, err
		}
	}
	if err != nil || newest < first {
		return nil, err
	}
	newest = min(newest, first+segmentSize-1)
	if p := s.all.Get(by.Tenant, Audit); p != nil && p.Export != "" {
		if err := s.export(ctx, by.Tenant, p.Export, first, newest); err != nil {
			return nil, err
		}
	}
	for at := first - 1; at < newest; {
		now, err := ledger.Retire(ctx, by, newest, reason(limit))
		if errors.Is(err, audit.ErrBusy) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if now <= at { // the rest is not sealed yet
			return nil, nil
		}
		at = now
	}
	return record.Seq(newest), nil
}

func reason(limit record.Limit) any {
	r := map[string]any{}
	if !limit.Before.IsZero() {
		r["before"] = limit.Before.Format(time.RFC3339)
	}
	if limit.Keep > 0 {
		r["keep"] = limit.Keep
	}
	return r
}

// export writes a segment to a file of its own, which is whole or not there.
// One that is there already is as it should be: events never change.
func (s *Service) export(ctx context.Context, tenant, dir string, from, upto uint64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export audit events %d-%d to %s: %w", from, upto, dir, err)
		}
	}()
	path := filepath.Join(dir, fmt.Sprintf("%s-%012d-%012d.jsonl", tenant, from, upto))
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".segment-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	out := bufio.NewWriterSize(f, 1<<20)
	err = s.opt.Ledger.ExportSegment(ctx, tenant, from, upto, out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return safeopen.SyncDir(dir)
}
