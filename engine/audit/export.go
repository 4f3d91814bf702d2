package audit

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// exportSlice is how many events an export copies out at a time: the writer
// may be slow, and no read transaction waits for it.
const exportSlice = 1000

// columns of the CSV export.
var columns = []string{
	"seq", "event_id", "created_at", "event_type", "tenant_id", "trace_id", "actor", "actor_kind", "door", "prev",
	"subject", "id", "state", "detail",
}

// Export writes the log, oldest first: "jsonl" is one event per line in its
// exact stored bytes, "csv" a table with a header line. In CSV a cell that a
// spreadsheet would run as a formula gets a leading apostrophe; JSONL is the
// form to keep.
func (l *Ledger) Export(ctx context.Context, tenant, format string, w io.Writer) error {
	var write func(data []byte) error
	var flush func() error
	switch format {
	case "jsonl":
		write = func(data []byte) error {
			_, err := w.Write(append(data, '\n'))
			return err
		}
		flush = func() error { return nil }
	case "csv":
		table := csv.NewWriter(w)
		if err := table.Write(columns); err != nil {
			return fmt.Errorf("export the audit log: %w", err)
		}
		write = func(data []byte) error { return writeRow(table, data) }
		flush = func() error { table.Flush(); return table.Error() }
	default:
		return core.Invalid("format", format, "jsonl, csv")
	}
	var count, left uint64
	err := l.st.View(ctx, tenant, func(tx store.Tx) (err error) {
		count = uint64(tx.Counter(counter))
		left, err = l.Sealed(tx)
		return err
	})
	for lo, hi := uint64(1), left; err == nil && lo <= count; lo, hi = hi+1, min(count, hi+exportSlice) {
		var batch [][]byte
		err = l.walkSlice(ctx, tenant, lo, hi, false, func(data []byte) error {
			batch = append(batch, append(make([]byte, 0, len(data)+1), data...))
			return nil
		})
		for i := 0; i < len(batch) && err == nil; i++ {
			err = write(batch[i])
		}
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("export the audit log of %s: %w", tenant, err)
	}
	return nil
}

func writeRow(table *csv.Writer, data []byte) error {
	e, err := decode(data)
	if err != nil {
		return err
	}
	p, err := e.Data()
	if err != nil {
		return err
	}
	prev := ""
	if e.Prev > 0 {
		prev = strconv.FormatUint(e.Prev, 10)
	}
	row := []string{
		strconv.FormatUint(e.Seq, 10), e.EventID, e.CreatedAt.Format(time.RFC3339Nano), e.EventType, e.TenantID, e.TraceID,
		e.Actor, string(e.Kind), string(e.Door), prev, p.Subject, p.ID, string(p.State), string(p.Detail),
	}
	for i, cell := range row {
		row[i] = harmless(cell)
	}
	return table.Write(row)
}

// harmless keeps a spreadsheet from taking a cell for a formula (OWASP, CSV
// injection): it looks at the first character, some programs past blanks.
func harmless(cell string) string {
	first := strings.TrimLeft(cell, " \t\r\n\v\f\u00a0")
	if first == "" {
		return cell
	}
	if strings.ContainsRune("=+-@＝＋－＠|%", []rune(first[:min(len(first), 4)])[0]) || len(first) < len(cell) && bytes.ContainsRune([]byte("\t\r\n"), rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
