package audit_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestJSONLExportIsTheLogItself(t *testing.T) {
	h := newHouse(t)
	h.record(1, 2500)
	var out bytes.Buffer
	expect.No(t, h.Export(t.Context(), acme, "jsonl", &out))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	expect.Must(t, len(lines) == 2502, "%d lines", len(lines))
	for i, line := range lines {
		var e audit.Event
		err := core.Decode([]byte(line), &e)
		expect.Must(t, err == nil && e.Seq == uint64(i+1), "line %d: %v: %s", i+1, err, line)
	}
}

func TestCSVExportHasNoFormula(t *testing.T) {
	h := newHouse(t)
	hostile := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\n=1", "＝1", "|x", "%x", "a\"b,c;d\ne", "plain"}
	for _, s := range hostile {
		by := alice
		by.Name = s
		expect.No(t, h.Refuse(t.Context(), by, audit.Entry{Type: "x.y", Subject: "task", ID: s, Detail: map[string]string{"say": s}}, nil))
	}
	var out bytes.Buffer
	expect.No(t, h.Export(t.Context(), acme, "csv", &out))
	rows, err := csv.NewReader(bytes.NewReader(out.Bytes())).ReadAll()
	expect.Must(t, err == nil && len(rows) == len(hostile)+2, "%d rows, %v", len(rows), err)
	for _, row := range rows[1:] {
		for i, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r\n |%") || strings.HasPrefix(cell, "＝") {
				t.Errorf("column %s: %q", rows[0][i], cell)
			}
		}
	}
	last := rows[len(rows)-1]
	expect.True(t, last[6] == "plain" && last[11] == "plain" && last[13] == `{"say":"plain"}`, "plain row %q", last)
}

type brokenPipe struct{ left int }

var errPipe = errors.New("broken pipe")

func (p *brokenPipe) Write(b []byte) (int, error) {
	if p.left -= len(b); p.left < 0 {
		return 0, errPipe
	}
	return len(b), nil
}

func TestExportReportsWhatWentWrong(t *testing.T) {
	h := newHouse(t)
	h.record(2000)
	for _, format := range []string{"jsonl", "csv"} {
		expect.Err(t, h.Export(t.Context(), acme, format, &brokenPipe{left: 10_000}), errPipe, format, "to a broken pipe")
	}
	expect.Err(t, h.Export(t.Context(), acme, "xml", &bytes.Buffer{}), core.Kind(core.InvalidInput), "xml")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Err(t, h.Export(ctx, acme, "jsonl", &bytes.Buffer{}), context.Canceled, "cancelled")
}
