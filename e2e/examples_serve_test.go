package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestTheExampleOfAServiceStarts runs the line that systemd would, with a data
// file and ports of its own, after the example's operators were let in.
func TestTheExampleOfAServiceStarts(t *testing.T) {
	t.Parallel()
	unit := expect.Of(os.ReadFile("examples/serve/swarmdeck.service"))(t)
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/swarmdeck --data (\S+) (serve .*)$`).FindSubmatch(unit)
	expect.Must(t, line != nil, "the unit starts something else")
	u := newUser(t)
	dir := expect.Of(os.Getwd())(t)
	u.ok("up", dir+"/examples/serve")
	expect.Has(t, u.ok("operator", "list"), "night-watch")
	args := strings.Fields(regexp.MustCompile(`:\d+`).ReplaceAllString(string(line[2]), ":0"))
	d := u.daemon(args...)
	code, _, stderr := u.run("task", "list")
	expect.True(t, code == 0, "exit %d %s", code, stderr)
	signer, _ := pair(t, 1)
	expect.Fails(t, expect.Fault(d.dial("ann", signer)), "a stranger's key opens it")
}
