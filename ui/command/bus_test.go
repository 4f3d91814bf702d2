package command_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// messages is the part of the walk that uses every command of the bus.
func (w *walk) messages() {
	t := w.t
	w.line("agent create ann --project tools --role asks -- cat")
	w.line("agent create bob --project tools --role answers -- cat")
	w.do("bus consume indexer 'nav.>'")
	made := w.do(`bus publish nav.complete '{"location":"kitchen"}' --from ann --ttl 90s --priority 2 --correlation a7f3c2e1-8d4b-4a9c-9e2f-1b3c4d5e6f7a --trace 0af7651916cd43dd8448eb211c80319c`)
	if made["topic"] != "nav.complete" || made["sender_id"] != "ann" || made["ttl"] != 90.0 || made["priority"] != 2.0 || made["status"] != "published" ||
		made["message_type"] != "event" || made["correlation_id"] != "a7f3c2e1-8d4b-4a9c-9e2f-1b3c4d5e6f7a" || made["trace_id"] != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("publish: %v", made)
	}
	w.line(`bus publish nav.failed '{"text":"\u001b]0;owned\u0007\u202e"}' --type error`)
	w.do("bus list --topic nav.* --page 1")
	w.text("bus list", "MESSAGE", "nav.complete", "published", str(made["message_id"]))
	got := w.do("bus show " + str(made["message_id"]))
	expect.True(t, got["status"] == "published" && got["payload"].(map[string]any)["location"] == "kitchen", "show: %v", got)
	all := w.objects("bus topics")
	expect.True(t, len(all) == 2 && all[0]["topic"] == "nav.failed" && all[1]["subscribers"] == 1.0 && all[1]["lag"] == 2.0, "topics: %v", all)
	w.do("bus topics")
	w.text("bus topics", "nav.failed", "LAG")
	w.text("bus subscriptions", "indexer", "nav.>", "closed")
	expect.Row(t, w.do("bus subscriptions"), "name", "indexer", "lag", 2.0, "durable", true)
	expect.Has(t, w.line("bus consume indexer --count 1"), `nav.complete event ann: {"location":"kitchen"}`, "consume")
	all = w.objects("bus consume indexer")
	expect.True(t, len(all) == 1 && all[0]["topic"] == "nav.failed", "consume: %v", all)
	w.text("bus tail nav.>", "nav.failed")
	all = w.objects("bus tail --count 1")
	expect.True(t, len(all) == 1 && all[0]["topic"] == "nav.failed", "tail: %v", all)
	w.do("bus tail sys.agent.*")
	w.do("bus unsubscribe indexer")

	w.do(`bus send bob '{"n":1}' --from ann`)
	w.line(`bus send bob '{"n":2}' --priority 1 --ttl 100`)
	all = w.objects("bus read bob --peek")
	expect.True(t, len(all) == 2 && all[0]["priority"] == 1.0 && all[0]["status"] == "open", "peek: %v", all)
	w.text("bus read bob --peek", "@bob", "open")
	all = w.objects("bus read bob --count 1")
	expect.True(t, len(all) == 1 && all[0]["ttl"] == 100.0 && all[0]["status"] == "read", "read: %v", all)
	w.do("bus read bob")

	ask := w.do(`bus send bob '{}' --type request --from ann`)
	w.text("bus list --status unanswered", "no answer for")
	expect.Row(t, w.do(fmt.Sprintf(`bus reply %s '{"ok":true}'`, ask["message_id"])), "message_type", "response", "correlation_id", ask["correlation_id"])
	code, _, _ := w.fails(1, fmt.Sprintf(`bus reply %s '{}' --error`, ask["message_id"]))
	expect.True(t, code == "CONFLICT", "answered twice: %s", code)
	w.line("bus read bob")
	w.request()

	short := str(w.do(`bus send bob '{}' --ttl 1`)["message_id"])
	w.until("bus show "+short, "status", "expired")
	expect.Row(t, w.do("bus list --status dead --agent bob"), "message_id", short, "recipient_id", "bob", "dead", "expired")
	w.text("bus list --status dead", short, "expired", "@bob")
	if got := w.complete("bus resend "); !slices.Contains(got, short) {
		t.Errorf("resend offers %v", got)
	}
	again := w.do("bus resend " + short)
	expect.Row(t, again, "resend_of", short)
	expect.Row(t, w.do("bus show "+short), "resent_as", again["message_id"])
	expect.True(t, len(w.objects("bus list --status dead")) == 0, "sent again, and still dead")
	w.line("bus read bob")
	w.line("agent delete ann --yes")
	w.line("agent delete bob --yes")
}

// request asks and answers, from two doors at once.
func (w *walk) request() {
	t := w.t
	for _, c := range []struct {
		flag string
		code int
		want string
	}{{"", 0, `"objects":["cup"]`}, {"--error", 1, `"message_type":"error"`}} {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			id := str(w.until("bus list --status unanswered", "recipient_id", "bob")["message_id"])
			w.line(fmt.Sprintf(`bus reply %s '{"objects":["cup"]}' %s`, id, c.flag))
		}()
		code, out, stderr := w.run("-o", "json", "bus", "request", "bob", `{"skill":"detect"}`, "--timeout", "10s")
		<-answered
		expect.True(t, code == c.code && strings.Contains(out, c.want), "request %s: exit %d %s%s", c.flag, code, out, stderr)
		w.line("bus read bob")
	}
	w.used["bus request"] = true
	code, message, _ := w.fails(4, "bus request bob '{}' --timeout 20ms")
	expect.True(t, code == "UNAVAILABLE" && strings.Contains(message, "no response"), "unanswered: %s %s", code, message)
	w.line("bus read bob")
}

func TestMistakesInMessagesNameTheField(t *testing.T) {
	d := newDeck(t)
	d.line("agent create bob --project tools -- cat")
	for line, field := range map[string]string{
		"bus publish a..b '{}'":                  "topic",
		"bus publish sys.x '{}'":                 "topic",
		"bus publish a '[]'":                     "payload",
		"bus publish a '{'":                      "payload",
		"bus publish a '{}' --ttl 0":             "ttl",
		"bus publish a '{}' --ttl 3601":          "ttl",
		"bus publish a '{}' --ttl 1.5s":          "ttl",
		"bus publish a '{}' --ttl soon":          "ttl",
		"bus publish a '{}' --priority 0":        "priority",
		"bus publish a '{}' --priority 11":       "priority",
		"bus publish a '{}' --type request":      "type",
		"bus publish a '{}' --from nobody":       "sender_id",
		"bus publish a '{}' --correlation x":     "correlation_id",
		"bus publish a '{}' --trace x":           "trace_id",
		"bus publish a '{}' --task x":            "task_id",
		"bus publish a":                          "json",
		"bus send nobody '{}'":                   "recipient_id",
		"bus send broadcast '{}' --type request": "recipient_id",
		"bus send bob '{}' --type response":      "correlation_id",
		"bus request bob '{}' --timeout 2h":      "timeout",
		"bus request bob '{}' --timeout 0s":      "timeout",
		"bus reply x '{}'":                       "message_id",
		"bus show x":                             "message_id",
		"bus resend x":                           "message_id",
		"bus read nobody":                        "recipient_id",
		"bus read bob --count 0":                 "count",
		"bus tail 'a.>.b'":                       "pattern",
		"bus tail --count 1001":                  "count",
		"bus consume 'a b' x":                    "name",
		"bus consume fresh":                      "pattern",
		"bus unsubscribe 'a b'":                  "name",
		"bus list --status lost":                 "status",
		"bus list --topic a.":                    "pattern",
		"bus subscriptions --status lost":        "status",
	} {
		code, message, details := d.fails(2, line)
		expect.True(t, code == "INVALID_INPUT" && details["field"] == field, "%s: %s names %v, want %s: %s", line, code, details["field"], field, message)
	}
}

func TestFollowingGoesOnUntilInterrupted(t *testing.T) {
	d := newDeck(t)
	d.line(`bus publish old.news '{"n":0}'`)
	for run, line := range []string{"bus tail --follow", "bus consume reader '>' --start 1 --follow"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		out := expect.Of(os.Create(filepath.Join(t.TempDir(), "out")))(d.t)
		done := make(chan int)
		env := d.env
		env.Stdout, env.Stderr = out, out
		go func() { done <- command.Run(ctx, &env, split(t, line)) }()
		for i := 10*run + 1; i < 10*run+4; i++ {
			d.line(fmt.Sprintf(`bus publish new.news '{"n":%d}'`, i))
			expect.Await(t, fmt.Sprint(line, ": ", i), func() bool {
				text := string(expect.Of(os.ReadFile(out.Name()))(t))
				return strings.Contains(text, fmt.Sprintf(`{"n":%d}`, i)) && strings.Contains(text, `{"n":0}`)
			})
		}
		cancel()
		expect.Is(t, <-done, 130, line, "exit")
	}
	expect.Row(t, d.object("bus subscriptions"), "name", "reader", "lag", 0.0, "open", false)
}

func TestCompletionKnowsTheBus(t *testing.T) {
	d := newDeck(t)
	d.line("agent create bob --project tools -- cat")
	d.line(`bus publish nav.done '{}'`)
	d.line(`bus consume indexer 'nav.*'`)
	id := str(d.object(`bus send bob '{}' --type request`)["message_id"])
	for line, want := range map[string]string{
		"bus ":                    "publish",
		"bus publish ":            "nav.done",
		"bus tail ":               "nav.done",
		"bus send ":               "broadcast",
		"bus send b":              "bob",
		"bus read ":               "controller",
		"bus show ":               id,
		"bus reply ":              id,
		"bus consume ":            "indexer",
		"bus unsubscribe ":        "indexer",
		"bus send bob {} --type ": "request",
		"bus list --status ":      "unanswered",
		"bus list --kind ":        "response",
	} {
		got := d.complete(line)
		expect.True(t, slices.Contains(got, want), "%q offers %v, want %s", line, got, want)
	}
	expect.True(t, !slices.Contains(d.complete("bus read "), "broadcast"), "broadcast has no mailbox")
}

func split(t *testing.T, line string) []string {
	t.Helper()
	return expect.Of(command.Split(line))(t)
}
