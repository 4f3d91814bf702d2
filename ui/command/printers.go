package command

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
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
		text(func(c *call, v core.Page[cad.RoleTemplate]) error { return c.showCADRoles(v) }),
		text(func(c *call, v op.Answer) error { return c.showAnswer(v) }),
		text(func(c *call, v op.Decomposed) error { return c.showDecomposed(v) }),
		text(func(c *call, v op.Checkpoint) error { return c.verbatim(v, []byte(v.Text)) }),
		text(func(c *call, v op.Proof) error { return c.verbatim(v, []byte(v.Text)) }),
		text(func(c *call, v audit.Report) error { return c.showReport(v) }),
		text(func(c *call, v op.Deltas) error { return c.showDeltas(v) }),
		text(func(c *call, v dag.State) error { return c.showState(v) }),
		text(func(c *call, v resource.Proposal) error { return c.showPlan(v) }),
		text(func(c *call, v dag.Lineage) error { return c.showLineage(v) }),
		text(func(c *call, v engine.Replay) error { return c.showReplay(v) }),
		text(func(c *call, v dag.Comparison) error { return c.showComparison(v) }),
		text(func(c *call, v op.Picture) error { return c.showPicture(v) }),
		text(func(c *call, v *store.Report) error { return c.showCheck(v) }),
		text(func(c *call, v op.Backup) error { return c.showBackup(v) }),
		text(func(c *call, v engine.Handover) error { return c.showHandover(v) }),
		showWork,
		text(func(c *call, v op.Patch) error { return c.showPatch(v) }),
		text(func(c *call, v op.TreeFile) error { return c.verbatim(v, c.shown(v.Content)) }),
		said,
		fullWorkflow,
		showCard,
		halfApproved,
		showIntent,
		runEvents,
		full,
		rows(sessionColumns),
		rows(taskColumns),
		rows(resultColumns),
		rows(agentColumns),
		rows(historyColumns),
		rows(logColumns),
		rows(queueColumns),
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
		rows(offerColumns),
		rows(projectColumns),
		rows(workColumns),
		rows(remarkColumns), rows(viewedColumns),
		rows(checksColumns),
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
		rows(slotColumns),
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
		rows(tenantColumns),
		rows(troubleColumns),
		rows(visitorColumns),
		rows(serverColumns),
		rows(toolColumns),
		rows(eventColumns),
		rows(recordedColumns),
		rows(momentColumns),
		rows(dagCallColumns),
		rows(resourceColumns),
		rows(mountColumns),
		rows(policyChangeColumns),
		rows(forkColumns),
		rows(intentColumns),
		rows(keptColumns),
		rows(snapshotColumns),
		rows(signingColumns),
		rows(witnessColumns),
		rows(hostColumns),
		rows(engineColumns),
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

// said prints what tells itself, a line for each of its own; nothing where it
// has nothing to tell.
func said(c *call, _ *op.Op, out any) (bool, error) {
	v, is := out.(fmt.Stringer)
	if !is || v.String() == "" {
		return is, nil
	}
	return true, c.print(v, func(w io.Writer) error {
		for line := range strings.SplitSeq(v.String(), "\n") {
			fmt.Fprintln(w, term.Clean(line))
		}
		return nil
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
