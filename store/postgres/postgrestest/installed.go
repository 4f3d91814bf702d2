package postgrestest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// ServerEnv names the directory of the PostgreSQL to run, the one with bin in it;
// without it that is the newest of the system's.
const ServerEnv = "SWARMDECK_POSTGRES"

// installed is the directory of the server's programs. Without PostgreSQL the test is
// skipped, where it may be.
func installed(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(ServerEnv); dir != "" {
		return filepath.Join(dir, "bin")
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the other programs are beside it
			return filepath.Dir(path)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		Missing(t, "no PostgreSQL is installed: apt-get install postgresql")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1])
}

// Missing skips a test for what is not installed, where a test may be skipped.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("SWARMDECK_CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// give hands the directory to the user that the server runs as, and a copy of the
// programs where that one can't reach them.
func (c *Cluster) give() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := cmp.Or(uidErr, gidErr); err != nil {
		return err
	}
	c.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(c.dir, int(uid), int(gid)); err != nil {
		return err
	}
	if err := c.command("initdb", "--version").Run(); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	from, to := filepath.Dir(c.bin), filepath.Join(c.dir, "programs")
	c.bin = filepath.Join(to, "bin")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy %s, which the user postgres can't reach: %w", from, err)
	}
	return nil
}
