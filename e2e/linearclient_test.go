package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"swarmdeck/e2e/history"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/serve"
)

// item is a task that clients are at work on.
type item struct {
	op    history.Op
	sleep string // of its process, in seconds, or until:FILE is there

	mu             sync.Mutex
	task, approval string // as far as anybody was told
	attempt        int    // the last that anybody was told of
}

// effect is the process of a task: each run writes down when it begins and ends, by
// the clock of this machine, in a file of its own, as a command may not write to one
// that it names. One that sleeps until something is there writes down that it works.
const effect = `read id </proc/sys/kernel/random/uuid; exec >run-$0.$id; say() { read u _ </proc/uptime; echo $u $1 $id; }; say begin
case $1 in until:*) while ! test -e ${1#until:}; do say work; sleep 0.05; done;; *) sleep $1;; esac
say end; exit $2`

// line is the command that an operation is.
func (it *item) line(op history.Op) []string {
	it.mu.Lock()
	defer it.mu.Unlock()
	switch op.Verb {
	case history.Dispatch:
		argv := []string{"sh", "-c", effect, op.Key, it.sleep, "0"}
		if op.Fails {
			argv[5] = "1"
		}
		if op.Asks {
			argv = append(argv, "ask")
		}
		input, _ := json.Marshal(map[string]any{"argv": argv}) // strings alone
		return []string{"task", "dispatch", "--kind", "exec.run", "--max-attempts", "10", "--idempotency-key", op.Key, "--input", string(input)}
	case history.Show, history.Cancel:
		return append(strings.Fields(string(op.Verb)), it.task)
	case history.StopOn, history.StopOff, history.Deny:
		return append(append(strings.Fields(string(op.Verb)), "--reason", "trial"), strings.Fields(op.ID)...)
	default:
		return append(strings.Fields(string(op.Verb)), strings.Fields(op.ID)...)
	}
}

// do asks an engine until one has heard it, and takes the answer down.
func (f *fleet) do(ctx context.Context, client int, verb history.Verb, it *item) (a history.Answer) {
	n := client
	expect.Await(f.t, string(verb)+" is heard", func() (heard bool) {
		if ctx.Err() != nil {
			return true
		}
		m := int(f.last.Load()) // where one answered lately
		if n > client {
			m = n % len(f.machines)
		}
		n++
		switch a, heard = f.at(m, client, verb, it); {
		case !heard:
		case a.Outcome == history.Unknown:
			f.last.CompareAndSwap(int32(m), int32((m+1)%len(f.machines)))
		case changes(verb):
			f.last.Store(int32(m))
		}
		return heard
	})
	return a
}

// changes reports whether an answer is of the engine that has the tenant: others read the
// database themselves.
func changes(verb history.Verb) bool {
	return verb != history.Show && verb != history.ShowApproval && verb != history.StopShow
}

// at asks the engine of one machine and takes the answer down, unless there is none that
// heard it.
func (f *fleet) at(m, client int, verb history.Verb, it *item) (a history.Answer, heard bool) {
	op := it.op
	op.Verb = verb
	if verb == history.Approve || verb == history.Deny || verb == history.ShowApproval {
		it.mu.Lock()
		op.ID = it.approval
		it.mu.Unlock()
	}
	done := f.history().Ask(client, op)
	out, said, code, err := f.machines[m].ask(f.dir, it.line(op), 4*time.Second)
	if errors.Is(err, serve.ErrUnbegun) || code == askNobody {
		return a, false
	}
	a = answer(op, code, out, said, err)
	done(a)
	it.mu.Lock()
	defer it.mu.Unlock()
	if a.Task != "" {
		it.task, it.attempt = a.Task, max(it.attempt, a.Attempt)
	}
	if a.Approval != "" {
		it.approval = a.Approval
	}
	return a, true
}

// askNobody is that there is no engine at that place.
const askNobody = -2

// ask has the engine of a machine carry a command out.
func (m *machine) ask(dir string, line []string, patience time.Duration) (stdout, stderr string, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := serve.Dial(ctx, serve.SocketPath(os.Getenv, socket.Instance(m.path)))
	if err != nil {
		return "", "", askNobody, err
	}
	var out, said bytes.Buffer
	code, err = serve.Attach(ctx, conn, serve.Attachment{
		Line: core.Join(append(line, "-o", "json", "--data", m.path)), Dir: dir, Env: []string{"HOME=" + m.home},
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said, Patience: time.Second,
	})
	return out.String(), said.String(), code, err
}

// already is how a refusal names the status that it is due to.
var already = regexp.MustCompile(`is (\w+) already`)

// answer is what a command said.
func answer(op history.Op, code int, out, said string, err error) history.Answer {
	a := history.Answer{Said: said}
	if err != nil {
		a.Said += err.Error()
		return a
	}
	if code == 0 {
		var got struct {
			Task     string `json:"task_id"`
			Approval string `json:"approval_id"`
			Status   string `json:"status"`
			Attempt  int    `json:"attempt"`
			Stopping bool   `json:"cancel_requested"`
			On       bool   `json:"on"`
			Result   struct {
				Error json.RawMessage `json:"error"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			a.Said = fmt.Sprintf("%v: %s", err, out)
			return a
		}
		a = history.Answer{Outcome: history.Done, Approval: got.Approval, On: got.On, Said: string(got.Result.Error)}
		switch op.Verb {
		case history.Approve, history.Deny, history.ShowApproval:
			a.Verdict = got.Status
		case history.Dispatch, history.Show, history.Cancel:
			a.Task, a.Status, a.Attempt, a.Stopping = got.Task, got.Status, got.Attempt, got.Stopping
		}
		return a
	}
	switch field(said, "code") {
	case "CONFLICT", "NOT_FOUND", "INVALID_INPUT", "DENIED":
		a.Outcome, a.Verdict = history.Refused, field(said, "status")
		a.Stopping = strings.Contains(said, "is being cancelled already")
		if is := already.FindStringSubmatch(said); is != nil {
			a.Status = is[1]
		}
	}
	return a
}

// client works on its own tasks and on those of others until ctx ends.
func (f *fleet) client(ctx context.Context, n int, random *rand.Rand) {
	for made := 0; ctx.Err() == nil; {
		if items := f.items(); len(items) == 0 || made < 10 && random.IntN(4) == 0 {
			f.do(ctx, n, history.Dispatch, f.item(n, made, random))
			made++
		} else {
			it := items[max(0, len(items)-12)+random.IntN(min(12, len(items)))]
			f.do(ctx, n, f.verb(it, random), it)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(10+random.IntN(50)) * time.Millisecond):
		}
	}
}

// verb is what a client does next with a task.
func (f *fleet) verb(it *item, random *rand.Rand) history.Verb {
	it.mu.Lock()
	defer it.mu.Unlock()
	n := random.IntN(100)
	switch {
	case it.task == "" || n < 10:
		return history.Dispatch
	case n < 18:
		return history.Cancel
	case n < 60 || it.approval == "":
		return history.Show
	case n < 70:
		return history.ShowApproval
	case n < 80:
		return history.Deny
	default:
		return history.Approve
	}
}

// stopper presses and releases the emergency stop until ctx ends.
func (f *fleet) stopper(ctx context.Context, n int, random *rand.Rand) {
	it := &item{}
	for ctx.Err() == nil {
		verb := []history.Verb{history.StopOn, history.StopShow, history.StopOff, history.StopOff, history.StopShow}[random.IntN(5)]
		f.do(ctx, n, verb, it)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(20+random.IntN(200)) * time.Millisecond):
		}
	}
}
