package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

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
