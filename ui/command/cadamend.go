package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// cadAmendments are what an operator does to a workspace without an agent.
func (t *tree) cadAmendments() []*cobra.Command {
	var from, keep, merged string
	return []*cobra.Command{
		t.command(spec{
			use: "undo WORKSPACE", short: "Take back the newest operation of a workspace", effect: Writes, args: []string{"workspace"},
			run: amends(func(c *call, args []string) (cad.Done, error) { return c.eng.CAD.Undo(c.ctx, c.by, args[0]) }),
		}),
		t.command(spec{
			use: "redo WORKSPACE", short: "Bring back the operation that was taken back last", effect: Writes, args: []string{"workspace"},
			run: amends(func(c *call, args []string) (cad.Done, error) { return c.eng.CAD.Redo(c.ctx, c.by, args[0]) }),
		}),
		t.command(spec{
			use: "merge SOURCE TARGET", short: "Bring what changed in one workspace into another", effect: Writes, args: []string{"workspace", "workspace"},
			long: "Bring what changed in one workspace into another. What changed on both sides, or overlaps, stays open as a\n" +
				"conflict of the target: see cad workspace conflicts and cad workspace resolve.",
			run: amends(func(c *call, args []string) (cad.Done, error) {
				return c.eng.CAD.MergeInto(c.ctx, c.by, args[0], args[1])
			}),
		}),
		t.command(spec{
			use: "resolve WORKSPACE ENTITY", short: "Decide a conflict that a merge left open", effect: Writes, args: []string{"workspace", "entity"},
			long: "Decide a conflict that a merge into WORKSPACE left open. --keep source takes the source's, and of overlapping\n" +
				"solids removes the target's; --keep target leaves the target as it is; --keep merged takes --merged: the properties\n" +
				"of a curve, or {\"operation\":\"union\"|\"subtract\"|\"keep_both\"} of a solid.",
			example: "cad workspace resolve main lid --from ws_lid --keep source\ncad workspace resolve main lid --from ws_lid --keep merged --merged '{\"operation\":\"union\"}'",
			flags: func(f *pflag.FlagSet) {
				f.StringVar(&from, "from", "", "the `WORKSPACE` that was merged; may be left out when only one conflict of the entity is open")
				source(f, "from", "workspace")
				enumVar(f, &keep, "keep", "", "", "whose counts: source|target|merged", "source", "target", "merged")
				f.StringVar(&merged, "merged", "", "`JSON` that --keep merged takes")
			},
			check: func(*call, []string) error {
				if keep == "" {
					return usage("keep", "cad workspace resolve: --keep is missing: source, target or merged")
				}
				if (keep == "merged") != (merged != "") {
					return usage("merged", "--merged: goes with --keep merged, and with that alone")
				}
				return nil
			},
			run: amends(func(c *call, args []string) (cad.Done, error) {
				r := cad.Resolve{EntityID: args[1], Source: from, Target: args[0], Merged: core.Raw(merged)}
				r.Strategy = map[string]model.Strategy{"source": model.KeepSource, "target": model.KeepTarget, "merged": model.ManualMerge}[keep]
				if from == "" {
					var err error
					if r.Source, err = c.conflictFrom(args[0], args[1]); err != nil {
						return cad.Done{}, err
					}
				}
				return c.eng.CAD.ResolveConflict(c.ctx, c.by, r)
			}),
		}),
	}
}

// conflictFrom is the only workspace from which an entity is in conflict.
func (c *call) conflictFrom(target, entity string) (string, error) {
	open, err := c.eng.CAD.Conflicts(c.ctx, c.by.Tenant, target)
	if err != nil {
		return "", err
	}
	var from []string
	for _, x := range open {
		if x.EntityID == entity {
			from = append(from, x.Source)
		}
	}
	switch len(from) {
	case 0:
		return "", core.Errorf(core.NotFound, "workspace %s: %s is in no open conflict", target, entity).With("field", "entity_id").With("value", entity)
	case 1:
		return from[0], nil
	}
	return "", core.Errorf(core.InvalidInput, "from: is missing: %s is in conflict from %s", entity, strings.Join(from, ", ")).With("field", "from")
}

// amends is the run of a command that changes a workspace.
func amends(do func(*call, []string) (cad.Done, error)) func(*call, []string) error {
	return func(c *call, args []string) error {
		done, err := do(c, args)
		if err != nil {
			return err
		}
		return c.print(done, func(w io.Writer) error {
			table(w, []cad.Done{done}, []column[cad.Done]{
				{title: "WORKSPACE", text: func(d cad.Done) string { return d.WorkspaceID }},
				{title: "SEQ", right: true, text: func(d cad.Done) string {
					if d.Seq == 0 {
						return "unchanged"
					}
					return fmt.Sprint(d.Seq)
				}},
				{title: "PUT", most: 60, text: func(d cad.Done) string { return strings.Join(d.Entities, ",") }},
				{title: "REMOVED", most: 40, text: func(d cad.Done) string { return strings.Join(d.Removed, ",") }},
			}, false)
			return nil
		})
	}
}
