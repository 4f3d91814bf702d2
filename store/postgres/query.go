package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"swarmdeck/store"
)

// errLost says that the outcome of a statement is not known.
var errLost = errors.New("connection to PostgreSQL lost")

// patiently does what may be done again until a lost connection is back, for as long as a
// commit waits too.
func patiently(ctx context.Context, do func() error) error {
	for end := time.Now().Add(patience); ; wait(ctx, 100*time.Millisecond) {
		err := do()
		if !errors.Is(err, errLost) || ctx.Err() != nil || !time.Now().Before(end) {
			return err
		}
	}
}

// query runs one statement, a transaction of its own unless conn is in one, with
// parameters of the types []byte, [][]byte (bytea and an array of it), string,
// int64 and time.Duration (microseconds). The rows are in the binary format.
// Nothing is prepared by name. An error that is errLost leaves open whether the
// statement was carried out.
func (db *DB) query(ctx context.Context, conn *pgxpool.Conn, sql string, args ...any) (_ [][][]byte, err error) {
	defer db.asks(&err)()
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if conn == nil {
		c, err := db.pool.Acquire(ctx)
		if err != nil {
			return nil, db.lost(ctx, err)
		}
		defer c.Release()
		conn = c
	}
	types := conn.Conn().TypeMap()
	values, oids, formats := make([][]byte, len(args)), make([]uint32, len(args)), make([]int16, len(args))
	for i, arg := range args {
		formats[i] = pgtype.BinaryFormatCode
		switch v := arg.(type) {
		case []byte:
			oids[i], values[i] = pgtype.ByteaOID, v
			if v == nil {
				values[i] = []byte{}
			}
			continue
		case [][]byte:
			oids[i], values[i] = pgtype.ByteaArrayOID, array(v)
			continue
		case string:
			oids[i], values[i] = pgtype.TextOID, append([]byte{}, v...) // not nil, which is NULL
			continue
		case time.Duration:
			oids[i], arg = pgtype.Int8OID, v.Microseconds()
		default:
			oids[i] = pgtype.Int8OID
		}
		if values[i], err = types.Encode(oids[i], pgtype.BinaryFormatCode, arg, nil); err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	result := conn.Conn().PgConn().ExecParams(ctx, sql, values, oids, formats, []int16{pgtype.BinaryFormatCode}).Read()
	return result.Rows, db.lost(ctx, result.Err)
}

// array is the binary form of a bytea[] without nulls: dimensions, flags, type of
// the elements, length, index of the first, then each with its length in front.
// pgtype's way over reflection costs a commit more than its statement.
func array(of [][]byte) []byte {
	size := 20
	for _, v := range of {
		size += 4 + len(v)
	}
	out := make([]byte, 0, size)
	for _, n := range []uint32{1, 0, pgtype.ByteaOID, uint32(len(of)), 1} {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	for _, v := range of {
		out = binary.BigEndian.AppendUint32(out, uint32(len(v)))
		out = append(out, v...)
	}
	return out
}

// lost sorts the errors of a statement: one that the server reported without
// ending the connection means that it was not carried out.
func (db *DB) lost(ctx context.Context, err error) error {
	var told *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told) && told.Code == "53100":
		return fmt.Errorf("database %s: %w: %w", db.Name(), store.ErrFull, err)
	case errors.As(err, &told) && told.SeverityUnlocalized == "ERROR":
		return db.fault(err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errLost, db.fault(ctx.Err()))
	}
	return fmt.Errorf("%w: %w", errLost, db.fault(inOneLine(err)))
}

// integer reads a column of the type bigint.
func integer(column []byte) int64 {
	if len(column) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(column))
}

// truth reads a column of the type boolean.
func truth(column []byte) bool { return len(column) == 1 && column[0] == 1 }

// worded is an error of the driver in one line.
type worded struct {
	text string
	error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.error }

// inOneLine joins what a connection was refused for, which the driver says on a line
// for each try.
func inOneLine(err error) error {
	if !errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	lines := strings.Split(err.Error(), "\n\t")
	return worded{strings.TrimSpace(lines[0] + " " + strings.Join(slices.Compact(lines[1:]), "; ")), err}
}

// withoutDSN is what is wrong with a DSN, of which nothing is quoted that may be a
// password: the driver would leave some in it.
func withoutDSN(err error) error {
	why := err.Error()
	if i := strings.LastIndex(why, quoted); i >= 0 {
		why = why[i+len(quoted):]
	}
	if strings.Contains(err.Error(), quoted+"failed to parse") { // and why ends with a part of it
		why = "neither postgres://… nor words key=value; in a URL, write signs and spaces of a password as %40"
	}
	return fmt.Errorf("the URL can't be used: %s", why)
}

// quoted is what stands between a DSN and what is wrong with it.
const quoted = "`: "
