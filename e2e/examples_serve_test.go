package e2e

import (
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
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

// TestTheExampleOfTwoEnginesOnADatabaseStarts runs what the compose file starts, at once on
// an empty database, and the commands that its first lines name.
func TestTheExampleOfTwoEnginesOnADatabaseStarts(t *testing.T) {
	t.Parallel()
	file := expect.Of(os.ReadFile("examples/serve/compose.yaml"))(t)
	starts := regexp.MustCompile(`(?m)^    command: \[(.*)\]$`).FindAllSubmatch(file, -1)
	names := regexp.MustCompile(`(?m)^# .* exec (deck[12]) swarmdeck (.*)$`).FindAllSubmatch(file, -1)
	expect.Must(t, len(starts) == 2 && len(names) == 2, "%d engines, %d commands", len(starts), len(names))
	dsn := postgrestest.Start(t).Database(t, "compose")
	decks, ended := map[string]*user{}, map[string]<-chan error{}
	for i, start := range starts {
		deck := "deck" + strconv.Itoa(i+1)
		l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
		door := l.Addr().String()
		expect.No(t, l.Close())
		line := strings.NewReplacer(`":2222"`, door, `"`+deck+`:2222"`, door, `"127.0.0.1:9090"`, "127.0.0.1:0").Replace(string(start[1]))
		u := newUser(t)
		u.onDatabase(t, dsn, nil)
		engine := u.command(strings.Split(line, ", ")...)
		expect.No(t, engine.Start())
		decks[deck], ended[deck] = u, expect.Later(engine.Wait)
		defer func() {
			_ = engine.Process.Signal(syscall.SIGTERM)
			<-ended[deck]
		}()
	}
	for deck, u := range decks {
		expect.Await(t, deck, func() bool {
			select {
			case err := <-ended[deck]:
				t.Fatalf("%s ended: %v", deck, err)
			default:
			}
			code, out, _ := u.run("engine", "list")
			return code == 0 && strings.Count(out, " up ") == 2
		})
	}
	for _, line := range names {
		decks[string(line[1])].ok(strings.Fields(string(line[2]))...)
	}
}
