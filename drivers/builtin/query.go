package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Bounds of a query.
const (
	maxQuery = 64 << 10
	// maxHeap is the memory that the values of a query may take.
	maxHeap = 256 << 20
	// maxData is where the kernel refuses more to the query's process: one
	// single operation can ask for more than can be seen coming.
	maxData = 1 << 30
)

// query starts a process that answers a call of json-query.
func (r *Runner) query(ctx context.Context, call skill.Call) (swarm.Work, error) {
	as := *call.Skill
	as.Runner = skill.Spec{Kind: "exec", Argv: r.opt.Query, Dir: r.opt.Dir}
	w := &queryWork{log: call.Log}
	call.Skill, call.Results, call.Log = &as, nil, w.line
	var err error
	w.Work, err = r.opt.Commands.Start(ctx, call)
	return w, err
}

// queryWork is the process of a query, whose last words are why it failed.
type queryWork struct {
	swarm.Work
	log  func(level, line string)
	last string
}

// ownWords begin each line that Answer writes to stderr. All others are those
// of a crash, which tell the operator of a skill nothing.
const ownWords = "json-query: "

func (w *queryWork) line(level, line string) {
	if text, own := strings.CutPrefix(line, ownWords); own {
		w.last = text
		w.log(level, text)
	}
}

func (w *queryWork) Outcome() task.Outcome {
	o := w.Work.Outcome()
	if o.Status == task.Failed && strings.HasPrefix(o.Error.Message, "exit status ") {
		o.Error = &task.Error{Code: "query_failed", Message: w.last}
		if w.last == "" {
			o.Error.Message = fmt.Sprintf("the process of the query crashed, as one does that takes more than %d GiB of memory", maxData>>30)
		}
	}
	return o
}

// Answer is what the process of a query does: it reads the document of an
// exec skill, whose parameters are {"query","input"}, and writes
// {"results":[…]} with everything that the query gives. It bounds the memory
// of the process it runs in. Queries see nothing but their input: no files,
// no environment, no modules. It returns the exit status, 0 or 1.
func Answer(in io.Reader, out, errs io.Writer) int {
	if err := answer(in, out); err != nil {
		fmt.Fprintln(errs, ownWords+strings.ReplaceAll(err.Error(), "\n", " "))
		return 1
	}
	return 0
}

func answer(in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(io.LimitReader(in, 2*core.MaxInput))
	if err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	var doc struct {
		Params struct {
			Query string   `json:"query"`
			Input core.Raw `json:"input"`
		} `json:"params"`
		Results map[string]core.Raw `json:"results"`
		TaskID  string              `json:"task_id"`
		TraceID string              `json:"trace_id"`
	}
	if err := core.Decode(data, &doc); err != nil {
		return err
	}
	code, err := compile(doc.Params.Query)
	if err != nil {
		return err
	}
	if len(doc.Params.Input) == 0 {
		return core.Invalid("input", "", "a JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(doc.Params.Input))
	dec.UseNumber()
	var input any
	if err := dec.Decode(&input); err != nil {
		return core.Errorf(core.InvalidInput, "input: %v", err)
	}
	if err := boundData(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	go watchHeap(ctx, stop)
	results, err := collect(ctx, code, input)
	if err != nil {
		return err
	}
	_, err = out.Write(results)
	return err
}

func compile(text string) (*gojq.Code, error) {
	if text == "" || len(text) > maxQuery {
		return nil, core.Invalid("query", text, "a jq query of at most 64 KiB")
	}
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, core.Errorf(core.InvalidInput, "query: %v", err).With("field", "query")
	}
	code, err := gojq.Compile(q)
	if err != nil {
		return nil, core.Errorf(core.InvalidInput, "query: %v", err).With("field", "query")
	}
	return code, nil
}

// collect runs a query and gathers what it gives, up to the largest result.
func collect(ctx context.Context, code *gojq.Code, input any) ([]byte, error) {
	const tail = "]}"
	all := []byte(`{"results":[`)
	iter := code.RunWithContext(ctx, input)
	for first := true; ; first = false {
		v, ok := iter.Next()
		if !ok {
			return append(all, tail...), nil
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			switch {
			case errors.As(err, &halt) && halt.Value() == nil:
				return append(all, tail...), nil // "halt" ends a query in order
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("the query failed: %w", err)
		}
		one, err := gojq.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("the query gave what is no JSON: %w", err)
		}
		if !first {
			all = append(all, ',')
		}
		if len(all)+len(one)+len(tail) > skill.MaxResult {
			return nil, fmt.Errorf("the query gives more than %d bytes", skill.MaxResult)
		}
		all = append(all, one...)
	}
}

// watchHeap ends a query whose values take too much memory.
func watchHeap(ctx context.Context, stop context.CancelCauseFunc) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for !core.Within(ctx.Done(), 5*time.Millisecond) {
		if metrics.Read(sample); sample[0].Value.Uint64() > maxHeap {
			stop(fmt.Errorf("the query takes more than %d MiB of memory", maxHeap>>20))
			return
		}
	}
}

// boundData makes the kernel refuse memory beyond maxData. A build that takes
// that much for itself, as one with the race detector does, goes without.
func boundData() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
		return fmt.Errorf("read the limit of memory: %w", err)
	}
	if dataInUse() > maxData/2 {
		return nil
	}
	limit := unix.Rlimit{Cur: min(maxData, now.Cur), Max: now.Max}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit the memory: %w", err)
	}
	return nil
}

// dataInUse is the private memory of this process that counts towards
// RLIMIT_DATA, in bytes.
func dataInUse() uint64 {
	var kib uint64
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return math.MaxUint64
	}
	for _, line := range bytes.Split(status, []byte{'\n'}) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmData:")); ok {
			_, _ = fmt.Sscan(string(rest), &kib)
		}
	}
	return kib << 10
}
