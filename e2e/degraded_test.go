package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// edit changes the one record of a data file whose value holds a text, with the
// right checksum, as whoever has the file can.
func (u *user) edit(tenant string, b store.Bucket, holds string, to func([]byte) []byte) {
	u.t.Helper()
	sealer := expect.Of(audit.OpenSealer(u.data() + ".key"))(u.t)
	db := expect.Of(store.Open(u.data(), store.Options{Seal: sealer.Seal}))(u.t)
	defer db.Close()
	edited := 0
	err := db.Update(context.Background(), tenant, func(tx store.Tx) error {
		var key, value []byte
		err := tx.Scan(b, nil, nil, false, func(k, v []byte) (bool, error) {
			if bytes.Contains(v, []byte(holds)) {
				key, value, edited = bytes.Clone(k), bytes.Clone(v), edited+1
			}
			return true, nil
		})
		if err != nil || key == nil {
			return err
		}
		return tx.Put(b, key, to(value))
	})
	expect.Must(u.t, err == nil && edited == 1, "edited %d records of %s: %v", edited, b, err)
}

func TestWrongRecordsAreNamedAndStopNoOtherTenant(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_good")
	u.ok("tenant", "create", "t_bad")
	session := field(u.ok("session", "create", "--tenant", "t_bad", "-o", "json"), "session_id")
	task := field(u.ok("task", "dispatch", "--tenant", "t_bad", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "-o", "json"), "task_id")
	code, all := u.checks("--profile", "open")
	expect.Must(t, code == 0 && all["records"].OK, "before: exit %d, %+v", code, all["records"])
	u.edit("t_bad", "session", session, func([]byte) []byte { return []byte("{") })
	u.edit("t_bad", "task", task, func(v []byte) []byte {
		return bytes.Replace(v, []byte(`"status":"queued"`), []byte(`"status":"running"`), 1)
	})
	named := func(what, text string) {
		t.Helper()
		for _, want := range []string{"t_bad", "session " + session, "task " + task, "without a lease"} {
			expect.Has(t, text, want, what, "does not say")
		}
	}
	code, out, _ := u.run("doctor", "--profile", "open")
	named("doctor", out)
	expect.True(t, code == 1, "doctor: exit %d, want 1", code)

	log := filepath.Join(u.home, "log")
	d := u.daemon("serve", "--metrics", "127.0.0.1:0", "--log-file", log, "--log-format", "json")
	input := `{"argv":["true"]}`
	for _, tenant := range []string{"t_good", "t_bad"} {
		got := field(u.ok("task", "dispatch", "--tenant", tenant, "--kind", "exec.run", "--input", input, "--wait", "-o", "json"), "status")
		expect.True(t, got == "succeeded", "a task of %s: %s", tenant, got)
	}
	code, out, _ = u.run("doctor", "--profile", "open")
	named("doctor beside the engine", out)
	expect.True(t, code == 1, "doctor beside the engine: exit %d, want 1", code)
	named("tenant troubles", u.ok("tenant", "troubles", "-o", "json"))
	named("tenant show", u.ok("tenant", "show", "t_bad"))
	out = u.ok("tenant", "list")
	expect.True(t, regexp.MustCompile(`t_bad +degraded`).MatchString(out) && regexp.MustCompile(`t_good +ok`).MatchString(out), "tenant list:\n%s", out)

	at := regexp.MustCompile(`http://\S+/metrics`).FindString(d.said)
	answer := expect.Of(http.Get(at))(t)
	defer answer.Body.Close()
	text := expect.Of(io.ReadAll(answer.Body))(t)
	if !strings.Contains(string(text), `swarmdeck_degraded{tenant="t_bad",component="tasks"} 2`) || strings.Contains(string(text), `swarmdeck_degraded{tenant="t_good"`) {
		t.Errorf("figures:\n%s", text)
	}
	logged := expect.Of(os.ReadFile(log))(t)
	named("the log", string(logged))
	for line := range strings.Lines(string(logged)) {
		var entry struct{ Level, Msg, Tenant, Component string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level != "ERROR" || entry.Msg != "degraded" || entry.Tenant != "t_bad" || entry.Component != "tasks" {
			t.Errorf("line %s (%v)", line, err)
		}
	}
}

func TestServeRefusesALogThatThereIsNot(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, bad := range [][]string{{"--log-level", "loud"}, {"--log-format", "xml"}} {
		code, _, stderr := u.run(append([]string{"serve"}, bad...)...)
		expect.True(t, (code == 2 || code == 1) && strings.Contains(stderr, bad[1]), "%q: exit %d, %s", bad, code, stderr)
	}
}
