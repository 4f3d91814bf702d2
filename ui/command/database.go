package command

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/store"
	"swarmdeck/ui/term"
)

// IsDatabase reports that --data names a PostgreSQL database and no file.
func IsDatabase(data string) bool {
	return strings.HasPrefix(data, "postgres://") || strings.HasPrefix(data, "postgresql://")
}

// DatabaseIn is the database that a data file points to, "" when the file is no
// such pointer or can't be read: one line that names the database.
func DatabaseIn(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line := make([]byte, maxDatabase)
	n, _ := f.Read(line)
	name := strings.TrimSpace(string(line[:n]))
	if !IsDatabase(name) || strings.ContainsAny(name, "\n\x00") {
		return ""
	}
	return name
}

// maxDatabase bounds what a pointer says, in bytes.
const maxDatabase = 4 << 10

// pointer is the path of the file that stands for a database on this machine:
// keys, sockets and what else lies beside a data file lie beside it. It depends
// on the server and the database, not on who asks.
func (e *Env) pointer(database string) string {
	id := database
	if u, err := url.Parse(database); err == nil {
		q := u.Query()
		id = strings.Join([]string{u.Host, u.Path, q.Get("host"), q.Get("port"), q.Get("dbname"), q.Get("search_path"), q.Get("service"), q.Get("servicefile"), q.Get("options")}, "\x00")
	}
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(baseDir(e.getenv, "XDG_DATA_HOME", ".local/share"), "swarmdeck", "postgres-"+hex.EncodeToString(sum[:6]))
}

// point writes the pointer of a database that was named by its URL, readable by
// this user alone: it may hold a password.
func (e *Env) point(flag string) error {
	if e.Attached || e.Caller.Door != core.DoorCLI {
		return nil
	}
	if named := strings.TrimSpace(e.named(flag)); IsDatabase(named) {
		return e.pointTo("data", named)
	}
	return nil
}

// stands tells where a store lies that a line names: the data file, or the file that
// stands for a database, with that.
func (e *Env) stands(name string) (path, database string, err error) {
	if name = strings.TrimSpace(name); IsDatabase(name) {
		return e.pointer(name), name, e.pointTo("to", name)
	}
	path = e.path(name)
	return path, DatabaseIn(path), nil
}

// pointTo writes the pointer of a database that a field names.
func (e *Env) pointTo(field, named string) error {
	if len(named) >= maxDatabase || strings.ContainsAny(named, "\n\x00") {
		return core.Errorf(core.InvalidInput, field+": want one line of less than %d bytes", maxDatabase).With("field", field)
	}
	if _, err := url.Parse(named); err != nil { // whose text has the password
		return core.Errorf(core.InvalidInput, "%s: not the URL of a database; want postgres://USER@HOST/DATABASE", field).With("field", field)
	}
	path := e.pointer(named)
	if DatabaseIn(path) == named {
		return nil
	}
	if _, err := os.Lstat(path); err == nil && DatabaseIn(path) == "" {
		return core.Errorf(core.Conflict, field+": %s is in the way: it names no database", path).With("field", field)
	}
	if err := replaceFile(path, []byte(named+"\n")); err != nil {
		return fmt.Errorf(field+": %w", err)
	}
	return nil
}

// replaceFile writes a file for this user alone, in a directory that is made: whoever reads
// it meanwhile, and whatever ends the program, finds the old text or the new one.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// onFile says that the line works on the file itself: it is one of the command
// line, and no engine that is running carries it out for another process.
func (c *call) onFile() bool { return c.env.Caller.Door == core.DoorCLI && !c.env.Attached }

// showBackup prints a backup with what was copied beside it.
func showBackup(c *call, b op.Backup) error {
	return c.checked(b, b.Report, append(b.Problems, core.Map(b.With, func(path string) string { return "with " + path })...))
}

// checked prints a report; in text only what matters.
func (c *call) checked(v any, r *store.Report, more []string) error {
	if c.g.Output != "text" {
		return c.show(v)
	}
	return c.print(v, func(w io.Writer) error {
		fmt.Fprintln(w, term.Clean(op.Verdict(r)))
		for _, line := range more {
			fmt.Fprintln(w, "  "+term.Clean(line))
		}
		return nil
	})
}
