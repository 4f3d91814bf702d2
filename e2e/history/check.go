package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Check looks for an order that explains all answers: of each task with its
// approval, and of the emergency stop. The error lists the calls that none explains.
func Check(calls []Call, patience time.Duration) error {
	tasks, stop := map[string][]Call{}, []Call(nil)
	for _, c := range calls {
		switch {
		case c.Answer.Outcome == Unknown && c.Op.Verb.reads(): // nobody knows more by it
		case c.Op.Verb.ofStop():
			stop = append(stop, c)
		default:
			tasks[c.Op.Key] = append(tasks[c.Op.Key], c)
		}
	}
	end := time.Now().Add(patience)
	for _, key := range slices.Sorted(maps.Keys(tasks)) {
		if err := explain("task "+key, model(work{}, work.step), tasks[key], time.Until(end)); err != nil {
			return err
		}
	}
	return explain("emergency stop", model(stopped(false), stopped.step), telling(stop), time.Until(end))
}

// model is a sequential object for the checker.
func model[S comparable](begin S, step func(S, Op, Answer) (S, bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return begin },
		Step: func(state, op, answer any) (bool, any) {
			next, ok := step(state.(S), op.(Op), answer.(Answer))
			return ok, next
		},
	}
}

func explain(what string, m porcupine.Model, calls []Call, patience time.Duration) error {
	ops := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		to := int64(c.To)
		if c.Answer.Outcome == Unknown {
			to = math.MaxInt64
		}
		ops[i] = porcupine.Operation{ClientId: c.Client, Input: c.Op, Output: c.Answer, Call: int64(c.From), Return: to}
	}
	why := "no order explains"
	switch porcupine.CheckOperationsTimeout(m, ops, max(patience, time.Millisecond)) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		why = "there was not enough time to explain"
	case porcupine.Illegal:
	}
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.From, b.From) })
	lines := make([]string, len(calls))
	for i, c := range calls {
		lines[i] = c.String()
	}
	return fmt.Errorf("%s: %s these answers:\n%s", what, why, strings.Join(lines, "\n"))
}
