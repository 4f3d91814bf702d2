package command

import (
	"bytes"
	"fmt"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/swarm"
	"swarmdeck/ui/term"
)

// printer prints the results that are its own: those of a type, or those of
// operations that show a record in full.
type printer func(c *call, o *op.Op, out any) (is bool, err error)

// printers are looked through from the first on.
func printers() []printer {
	return []printer{
		text(func(c *call, v op.Tree) error { return c.showTree(v) }),
		text(func(c *call, v swarm.Reason) error { return c.showReason(v) }),
		text(func(c *call, v estop.State) error { return c.showEStop(v) }),
		text(func(c *call, v op.DeletedAgent) error { return c.say(v.Agent, "agent %s deleted", v.Name) }),
		text(func(c *call, v op.TestedPolicy) error { return c.showTest(v) }),
		text(func(c *call, v judge.BacktestReport) error { return c.showBacktest(v) }),
		text(func(c *call, v judge.Explanation) error { return c.showExplanation(v) }),
		text(func(c *call, v op.Applied) error { return c.say(v, "done") }),
		text(func(c *call, v fmt.Stringer) error { return c.say(v, "%s", v) }),
		text(func(c *call, v core.Page[cad.RoleTemplate]) error { return c.showCADRoles(v) }),
		text(func(c *call, v op.Answer) error { return c.showAnswer(v) }),
		text(func(c *call, v op.Decomposed) error { return c.showDecomposed(v) }),
		fullWorkflow,
		showCard,
		halfApproved,
		full,
		rows(sessionColumns),
		rows(taskColumns),
		rows(resultColumns),
		rows(agentColumns),
		rows(historyColumns),
		rows(logColumns),
		rows(changeColumns),
		rows(skillColumns),
		rows(orderColumns),
		rows(executionColumns),
		rows(skillFigureColumns),
		rows(sourceColumns),
		rows(problemColumns),
		rows(invokedColumns),
		rows(messageColumns),
		rows(topicColumns),
		rows(deadColumns),
		rows(subscriptionColumns),
		rows(reactionColumns),
		rows(offerColumns),
		rows(projectColumns),
		rows(roleColumns),
		rows(approvalColumns),
		rows(decisionColumns),
		rows(egressColumns),
		rows(connectionColumns),
		rows(filesColumns),
		rows(budgetColumns),
		rows(secretColumns),
		rows(policyColumns),
		rows(ruleColumns),
		rows(subagentColumns),
		rows(retentionColumns),
		rows(operatorColumns),
		rows(noticeColumns),
		rows(cadAgentColumns),
		rows(cadMessageColumns),
		rows(workspaceColumns),
		rows(entityColumns),
		rows(entryColumns),
		rows(conflictColumns),
		rows(doneColumns),
		rows(scenarioColumns),
		rows(workflowColumns),
		rows(assignmentColumns),
	}
}

// streamed print what comes while an operation runs.
func streamed() []printer {
	return []printer{lines(logText), lines(messageText)}
}

// lines print each of the values that have come as a line of text.
func lines[T any](line func(v T, wide bool) string) printer {
	return text(func(c *call, values []T) error {
		var out bytes.Buffer
		for _, v := range values {
			if c.g.Output != "json" {
				fmt.Fprintln(&out, term.Clean(line(v, c.g.Output == "wide")))
			} else if err := putJSON(&out, v); err != nil {
				return err
			}
		}
		return c.flush(&out)
	})
}

// text prints a type in its own words.
func text[T any](print func(*call, T) error) printer {
	return func(c *call, _ *op.Op, out any) (bool, error) {
		v, is := out.(T)
		if !is {
			return false, nil
		}
		return true, print(c, v)
	}
}

// rows prints a record as one line of a table, and more as many.
func rows[T any](cols func(*call) []column[T]) printer {
	return func(c *call, _ *op.Op, out any) (bool, error) {
		switch v := out.(type) {
		case T:
			return true, record(c, v, cols(c))
		case []T:
			return true, list(c, core.Page[T]{Items: v}, cols(c))
		case core.Page[T]:
			return true, list(c, v, cols(c))
		}
		return false, nil
	}
}

// full prints all members of what is asked for in full.
func full(c *call, o *op.Op, out any) (bool, error) {
	if !o.Full {
		return false, nil
	}
	return true, c.show(out)
}
