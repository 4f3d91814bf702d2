package judge_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// oneKiB is an input of 1 KiB, as the task life benchmark uses.
var oneKiB = `{"argv":["echo","` + strings.Repeat("x", 1000) + `"]}`

func BenchmarkEvaluate(b *testing.B) {
	f := setup(b)
	confidence := 0.95
	result := execBy(alice, `{}`)
	result.Gate = judge.GateResult
	sure := result
	sure.Confidence, sure.Text = &confidence, strings.Repeat("all tests pass ", 20)
	for name, ask := range map[string]judge.Ask{
		"read-only":   execBy(alice, `{"argv":["git","log","--oneline","-20"],"dir":"/src"}`),
		"1KiB":        execBy(alice, oneKiB),
		"operator":    execBy(alice, `{"argv":["make","build"]}`),
		"shell":       execBy(alice, `{"argv":["sh","-c","make build && ls -l dist | wc -l"]}`),
		"tool":        call("read_file", `{"path":"README.md"}`),
		"result":      result,
		"result-text": sure,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := f.Evaluate(context.Background(), acme, ask); v.Decision != judge.Approve && name != "shell" {
					b.Fatal(v.ReasonCode)
				}
			}
		})
	}
}

// BenchmarkCommit is the judge's share of the writer's time: many decisions
// in one transaction, so that the store's sync does not count.
func BenchmarkCommit(b *testing.B) {
	f := setup(b)
	ask := execBy(alice, `{"argv":["true"]}`)
	v := f.Evaluate(context.Background(), acme, ask)
	b.ReportAllocs()
	const batch = 1000
	for i := 0; i < b.N; i += batch {
		err := f.ledger.Update(context.Background(), alice, func(tx *audit.Tx) error {
			for range min(batch, b.N-i) {
				if _, _, err := f.Commit(tx, ask, v); err != nil {
					return err
				}
			}
			_, err := tx.Record(audit.Entry{Type: "task.queued", Subject: "task", ID: taskID, Detail: core.Raw(`{}`)})
			return err
		})
		expect.No(b, err)
	}
}

// BenchmarkHistory reads 100,000 stored decisions in the ways that doors do.
func BenchmarkHistory(b *testing.B) {
	f := setup(b)
	v := f.Evaluate(context.Background(), acme, execBy(alice, argv("ls")))
	for i := 0; i < 100_000; {
		err := f.ledger.Update(context.Background(), alice, func(tx *audit.Tx) error {
			for range 5000 {
				ask := execBy(alice, argv("ls"))
				ask.Action.Args, ask.TaskID = core.Raw(argv("ls")), core.NewID(core.TaskPrefix, acme, uint64(i))
				v := v
				if _, _, err := f.Commit(tx, ask, v); err != nil {
					return err
				}
				i++
			}
			_, err := tx.Record(audit.Entry{Type: "task.queued", Subject: "task", ID: taskID, Detail: core.Raw(`{}`)})
			return err
		})
		expect.No(b, err)
		f.clock.pass(time.Second)
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			f.decision(core.NewID(core.DecisionPrefix, acme, 50_000))
		}
	})
	for name, filter := range map[string]core.Filter{
		"newest page": {},
		"deep page":   {Page: 4000},
		"by time":     {Since: f.clock.Now().Add(-15 * time.Second), Until: f.clock.Now().Add(-10 * time.Second)},
		"one task":    {Task: core.NewID(core.TaskPrefix, acme, 7)},
		"match":       {Match: "nowhere"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				expect.Of(f.Decisions(context.Background(), acme, filter))(b)
			}
		})
	}
}

// BenchmarkBacktest makes a thousand past decisions anew.
func BenchmarkBacktest(b *testing.B) {
	f := setup(b)
	const past = 1000
	ask := call("read_file", `{"path":"README.md"}`)
	v := f.Evaluate(context.Background(), acme, ask)
	err := f.ledger.Update(context.Background(), robot, func(tx *audit.Tx) error {
		for range past {
			if _, _, err := f.Commit(tx, ask, v); err != nil {
				return err
			}
		}
		return nil
	})
	expect.No(b, err)
	p := f.propose(alice, rulesOf(mild, mildCases))
	for b.Loop() {
		rep, err := f.BacktestPolicy(context.Background(), alice, p.PolicyID, past)
		if err != nil || rep.Checked != past {
			b.Fatalf("%+v %v", rep, err)
		}
	}
}
