package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/ui/command"
)

const awaitUsage = "usage: await [-t 10s] screen|status /re/ · task ID FIELD=VALUE… · agent NAME FIELD=VALUE… · approval [N] · quiet · left"

// await waits for a state. It is the only thing that waits.
func (r *run) await(ts teller, args []string) {
	within, args := deadline(ts, args)
	if len(args) == 0 {
		ts.Fatalf(awaitUsage)
	}
	r.show.line(append([]string{"await"}, args...))
	what, rest := args[0], args[1:]
	switch what {
	case "screen", "status":
		r.awaitText(ts, within, what, rest)
	case "task", "agent":
		r.awaitRecord(ts, within, what, rest)
	case "approval":
		r.awaitApproval(ts, within, rest)
	case "quiet":
		if s := r.stage; s != nil {
			if !r.until(ts, within, func() (bool, error) { return s.Quit() || s.Model().Quiet(), nil }) {
				ts.Fatalf("await quiet\nexpected: nothing under way within %s\nactual: the screen below still changes", within)
			}
			return
		}
		r.awaitIdle(ts, within)
	case "left":
		s := r.on(ts)
		if !r.until(ts, within, func() (bool, error) { return s.Quit(), nil }) {
			ts.Fatalf("await left\nexpected: the cockpit is left within %s\nactual: it is open", within)
		}
	default:
		ts.Fatalf(awaitUsage)
	}
}

// deadline takes -t D off the beginning or the end of the words.
func deadline(ts teller, args []string) (time.Duration, []string) {
	n := len(args)
	var text string
	switch {
	case n >= 2 && args[0] == "-t":
		text, args = args[1], args[2:]
	case n >= 2 && args[n-2] == "-t":
		text, args = args[n-1], args[:n-2]
	default:
		return limit, args
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		ts.Fatalf("await: -t %q is not allowed; allowed: a duration such as 30s", text)
	}
	return d, args
}

func (r *run) awaitText(ts teller, within time.Duration, what string, args []string) {
	s := r.on(ts)
	re := pattern(ts, "await "+what, args)
	ok := r.until(ts, within, func() (bool, error) {
		if what == "status" {
			return re.MatchString(s.status()), nil
		}
		return re.MatchString(s.text()), nil
	})
	if !ok {
		ts.Fatalf("await %s\nexpected: a match for /%s/ within %s\nactual: the screen below", what, source(re), within)
	}
}

// awaitRecord waits for the fields of a task or an agent, as its show command
// prints them.
func (r *run) awaitRecord(ts teller, within time.Duration, kind string, args []string) {
	var flags, wants []string
	id := ""
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--tenant" && i+1 < len(args):
			flags = append(flags, args[i], args[i+1])
			i++
		case strings.HasPrefix(args[i], "--"):
			flags = append(flags, args[i])
		case id == "":
			id = args[i]
		case strings.Contains(args[i], "="):
			wants = append(wants, args[i])
		default:
			ts.Fatalf(awaitUsage)
		}
	}
	if id == "" || len(wants) == 0 {
		ts.Fatalf(awaitUsage)
	}
	var last []byte
	ok := r.untilEngine(ts, within, func() (bool, error) {
		out, err := r.read(ts, append([]string{kind, "show", id, "-o", "json"}, flags...))
		if err != nil {
			return false, err
		}
		last = out
		return matches(kind, out, wants)
	})
	if !ok {
		ts.Fatalf("await %s %s\nexpected: %s within %s\nactual: %s", kind, id, strings.Join(wants, " "), within, brief(last, wants))
	}
	r.print(ts, last)
}

// matches holds a record against FIELD=VALUE conditions. It fails for a task
// that is over with another status: waiting would be in vain.
func matches(kind string, record []byte, wants []string) (bool, error) {
	var v any
	if err := json.Unmarshal(record, &v); err != nil {
		return false, fmt.Errorf("read the %s: %w", kind, err)
	}
	for _, want := range wants {
		field, value, _ := strings.Cut(want, "=")
		got, _ := member(v, field)
		if got == value || field == "status" && kind == "agent" && value == stateOf(record) {
			continue
		}
		if field == "status" && kind == "task" && task.Status(got).Terminal() {
			return false, fmt.Errorf("await task\nexpected: %s\nactual: it is over: %s", want, brief(record, wants))
		}
		return false, nil
	}
	return true, nil
}

// stateOf is the common word for an agent's status.
func stateOf(record []byte) string {
	var a fleet.Agent
	if core.DecodeStored(record, &a) != nil {
		return ""
	}
	return a.State()
}

// brief names the fields that were asked for, and what explains them.
func brief(record []byte, wants []string) string {
	var v any
	if json.Unmarshal(record, &v) != nil {
		return excerpt(string(record))
	}
	fields := []string{"status", "reason", "error_code", "waiting", "approval_id", "paused"}
	for _, want := range wants {
		field, _, _ := strings.Cut(want, "=")
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	var parts []string
	for _, field := range fields {
		if got, ok := member(v, field); ok && got != "" && got != "false" {
			parts = append(parts, field+"="+got)
		}
	}
	return strings.Join(parts, " ")
}

// awaitApproval waits for an open approval, or for exactly N of them, and
// leaves them on stdout.
func (r *run) awaitApproval(ts teller, within time.Duration, args []string) {
	var flags []string
	want, exact := 1, false
	for i := 0; i < len(args); i++ {
		if strings.HasPrefix(args[i], "--") && i+1 < len(args) {
			flags = append(flags, args[i], args[i+1])
			i++
			continue
		}
		n, err := strconv.Atoi(args[i])
		if err != nil || n < 0 {
			ts.Fatalf(awaitUsage)
		}
		want, exact = n, true
	}
	var last []byte
	count := func() int { return bytes.Count(last, []byte("\n")) }
	ok := r.untilEngine(ts, within, func() (bool, error) {
		out, err := r.read(ts, append([]string{"approval", "list", "--open", "--page-size", "100", "-o", "json"}, flags...))
		if err != nil {
			return false, err
		}
		last = out
		return count() == want || !exact && count() > want, nil
	})
	if !ok {
		ts.Fatalf("await approval\nexpected: %d open within %s\nactual: %d open\n%s", want, within, count(), excerpt(string(last)))
	}
	r.print(ts, last)
}

// awaitIdle waits until no task is running and none can start.
func (r *run) awaitIdle(ts teller, within time.Duration) {
	var running []byte
	ok := r.untilEngine(ts, within, func() (bool, error) {
		var err error
		running, err = r.read(ts, []string{"task", "list", "--status", "running", "-o", "json"})
		return len(running) == 0, err
	})
	if !ok {
		ts.Fatalf("await quiet\nexpected: no task is running within %s\nactual: %s", within, excerpt(string(running)))
	}
}

// read runs a reading command and returns what it prints.
func (r *run) read(ts teller, args []string) ([]byte, error) {
	env := r.env(ts)
	var out, bad bytes.Buffer
	env.Stdout, env.Stderr = &out, &bad
	if code := command.Run(r.ctx, env, args); code != command.ExitOK {
		return nil, fmt.Errorf("%s: %s", core.Join(args), excerpt(bad.String()))
	}
	return out.Bytes(), nil
}
