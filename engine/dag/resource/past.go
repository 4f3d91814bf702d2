package resource

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// makeEmpty makes an empty directory for a fork, which may be there already.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil { // agents of other users pass
		return fmt.Errorf("make a directory for a fork: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make a directory for a fork: %w", err)
	}
	return nil
}

// Past is what a fork is told of before its first prompt: the conversation that
// it goes on from, as the record has it. dir is where it works.
func (r *Resources) Past(ctx context.Context, tenant string, o fleet.Origin, dir string) (string, error) {
	edited, err := r.opt.DAG.EditOf(ctx, tenant, o.Intent)
	if err != nil {
		return "", err
	}
	c, err := r.opt.DAG.Conversation(ctx, tenant, dag.ConversationQuery{Event: o.EventID, Since: o.Since, Run: o.Alone, Instead: edited})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "You go on with work that agent %s began: you are its fork %s, from the event %s (%s).\n", o.AgentID, o.Branch, short(o.EventID), o.Kind)
	b.WriteString("This is the record of what was said and done up to there, oldest first, one JSON object on each line. " +
		"It is your conversation so far, not something to do again.\n")
	if c.Left {
		b.WriteString("What came before its first line is left out.\n")
	}
	b.WriteString("<record>\n")
	for _, line := range c.Lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteString("</record>\n")
	if edited != "" {
		b.WriteString("Its last line was changed by who forked you; go on from it as it stands.\n")
	}
	for _, call := range c.Open {
		fmt.Fprintf(&b, "The call %q of %q was asked for and has not been carried out here.\n", call.CallID, call.Tool)
	}
	if dir != "" {
		fmt.Fprintf(&b, "You work in %s from now on; paths in the record may name the directory of %s.\n", dir, o.AgentID)
	}
	for _, n := range o.Notes {
		b.WriteString(n + ".\n")
	}
	return b.String(), nil
}
