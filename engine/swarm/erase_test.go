package swarm_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (r *rig) subject(name string) *record.Subject {
	of := &record.Subject{Name: name}
	of.Task = r.tasks.Whose(of)
	return of
}

// erases carries an erasure out up to its end.
func (r *rig) erases(erase record.Erase, of *record.Subject) (all int) {
	r.T.Helper()
	for from := []byte(nil); ; {
		next, n, err := erase(r.T.Context(), alice, of, from)
		expect.No(r.T, err)
		if all += n; next == nil {
			return all
		}
		from = next
	}
}

func TestAnErasureThatWasEndedIsFinishedByAnother(t *testing.T) {
	r := newRig(t)
	const many = 2*record.Slice + 10
	r.live(many, 32)
	next, n, err := r.tasks.Erasers()[0].Erase(t.Context(), alice, r.subject("alice"), nil)
	if err != nil || next == nil || n != record.Slice {
		t.Fatal(next, n, err)
	}
	r.whole()
	r.Close()
	r.Open()
	expect.Is(t, r.erases(r.tasks.Erasers()[0].Erase, r.subject("alice")), many-record.Slice, "were left to erase")
	expect.Is(t, r.erases(r.tasks.Erasers()[0].Erase, r.subject("alice")), 0, "were erased again")
	for seq := range uint64(many) {
		id := core.NewID(core.TaskPrefix, acme, seq+1)
		res, err := r.tasks.Result(t.Context(), acme, id)
		if err != nil || !core.IsErased(r.task(id).Input) || len(res.Output) > 2 && !core.IsErased(res.Output) {
			t.Fatal(id, r.task(id).Input, res, err)
		}
	}
	r.whole()
	page, err := r.Ledger.List(t.Context(), acme, core.Filter{Kind: record.ErasedEvent})
	expect.True(t, err == nil && page.Info.Total == 3, "%v %v", page.Info, err)
}

func TestOnlyTheContentOfThatPersonIsErased(t *testing.T) {
	r := newRig(t)
	bob := alice
	bob.Name, bob.Person = "bob", "uid:7"
	asks := func(by core.Caller, parent string) task.Task {
		t.Helper()
		made, err := r.swarm.Dispatch(t.Context(), by, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{"word":"said"}`), Intent: "said", Parent: parent})
		expect.No(t, err)
		return made
	}
	his := asks(bob, "")
	hers := asks(alice, "")
	forHim := asks(alice, asks(alice, his.TaskID).TaskID)
	for range 4 {
		one := r.claim()
		expect.No(t, r.tasks.AppendLog(t.Context(), alice, one.TaskID, []task.LogLine{{Message: "said"}, {Message: "said"}}))
		r.complete(one, task.Outcome{Status: task.Failed, Error: &task.Error{Code: "no", Message: "said"}})
	}
	running := asks(bob, "")
	of := r.subject("uid:7")
	expect.Is(t, r.erases(r.tasks.Erasers()[0].Erase, of), 3, "tasks")
	expect.Is(t, r.erases(r.tasks.Erasers()[1].Erase, of), 6, "lines")
	want := []string{"task " + running.TaskID + " (queued)"}
	expect.True(t, slices.Equal(of.Left, want), "left: %v, want %v", of.Left, want)
	said := func(id string) int {
		at := r.task(id)
		text := string(at.Input) + at.Intent
		if res, err := r.tasks.Result(t.Context(), acme, id); err == nil {
			text += res.Error.Message
		}
		lines, _, err := r.tasks.Log(t.Context(), acme, id, 0, 10)
		expect.No(t, err)
		for _, line := range lines {
			text += line.Message
		}
		return strings.Count(text, "said")
	}
	for id, want := range map[string]int{his.TaskID: 0, forHim.TaskID: 0, hers.TaskID: 5, running.TaskID: 2} {
		n := said(id)
		expect.True(t, n == want, "task %s says it %d times, want %d", id, n, want)
	}
	_, err := r.swarm.Retry(t.Context(), bob, his.TaskID)
	expect.True(t, core.AsError(err).Code == core.Conflict, "retry: %v", err)
	r.whole()
	if err := r.Ledger.View(context.Background(), acme, func(tx *audit.Tx) error {
		whose, over, err := of.Task(tx, "tk_nosuch")
		expect.True(t, whose == record.NotTheirs && over, "%v %v", whose, over)
		return err
	}); err != nil {
		t.Error(err)
	}
}
