package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// checks runs a doctor and gives its findings by name.
func (u *user) checks(args ...string) (code int, all map[string]command.Check) {
	u.t.Helper()
	code, out, stderr := u.run(append([]string{"doctor", "-o", "json"}, args...)...)
	expect.Is(u.t, stderr, "")
	all = map[string]command.Check{}
	for line := range strings.Lines(out) {
		var c command.Check
		expect.No(u.t, json.Unmarshal([]byte(line), &c), line)
		all[c.Check] = c
	}
	return code, all
}

func TestDoctorLooksAndChangesNothing(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, profile := range []string{"worker", "reader", "open"} {
		code, all := u.checks("--profile", profile)
		good := true
		for _, c := range all {
			good = good && (c.OK || !c.Needed)
		}
		expect.True(t, good == (code == 0) && all[profile].OK == good && all["run"].OK, "%s: exit %d %+v", profile, code, all)
		expect.True(t, strings.Contains(all["store"].Detail, u.data()+" is not there yet") && !all["engine"].OK, "%+v\n%+v", all["store"], all["engine"])
	}
	left, err := os.ReadDir(u.home)
	expect.True(t, err == nil && len(left) == 0, "it left %v (%v)", left, err)
}

func TestDoctorLooksBesideAnEngine(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	_, all := u.checks()
	expect.True(t, all["engine"].OK && all["store"].OK && all["keys"].OK, "%+v\n%+v\n%+v", all["engine"], all["store"], all["keys"])
	expect.No(t, os.Chmod(u.data()+".key", 0o644))
	_, all = u.checks()
	expect.True(t, !all["keys"].OK && all["keys"].Fix == "chmod 600 "+u.data()+".key", "%+v", all["keys"])
	u.ok("tenant", "show")
}

func TestDoctorFindsAgentsOnPath(t *testing.T) {
	u := newUser(t)
	bin := filepath.Join(u.home, "bin")
	expect.No(t, os.Mkdir(bin, 0o700))
	expect.No(t, os.WriteFile(filepath.Join(bin, "goose"), []byte("#!/bin/sh\n"), 0o700))
	u.set("PATH=" + bin + ":" + os.Getenv("PATH"))
	_, all := u.checks("--profile", "open")
	expect.True(t, all["agents"].OK && strings.Contains(all["agents"].Detail, "goose ("+bin+"/goose)"), "%+v", all["agents"])
}
