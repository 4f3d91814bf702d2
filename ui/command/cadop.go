package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

func (t *tree) cadOp() *cobra.Command {
	var params core.Raw
	return t.command(spec{
		use: "op ID METHOD [PARAMS]", short: "Have a CAD agent carry out one operation", effect: Writes, args: []string{"cadagent", "cadmethod", "json"},
		long: "Have a CAD agent carry out one operation and print what it answers. PARAMS is a JSON object, @file, or - for stdin;\n" +
			"workspace_id is the agent's own unless it names another. Lengths are millimetres, angles radians. The agent's role\n" +
			"must allow the method, and what the rules want a person asked about needs one who can answer: the cockpit.",
		example: `cad op housing_designer solid.primitive '{"primitive_type":"box","width":100,"depth":80,"height":20}'` + "\n" +
			`cad op checker measure.mass '{"entity_id":"solid_1"}'`,
		check: func(c *call, args []string) (err error) {
			params = core.Raw(`{}`)
			if len(args) == 3 {
				params, err = c.document("params", args[2])
			}
			return err
		},
		run: func(c *call, args []string) error {
			done, err := c.eng.CAD.Execute(c.ctx, c.by, cad.Operation{
				AgentID: args[0], Method: args[1], Params: params, Unasked: !c.opened.Active && c.env.Caller.Door == core.DoorCLI,
			})
			if err != nil {
				return err
			}
			return c.print(operationAnswer{"success", done.Data, done.Metadata}, func(w io.Writer) error {
				if _, err := fmt.Fprintf(w, "%s by %s in %s: done\n", done.Method, done.AgentID, done.WorkspaceID); err != nil {
					return err
				}
				return details(w, done.Data)
			})
		},
	})
}

// operationAnswer is an operation as the CAD environment answers it.
type operationAnswer struct {
	Status   string   `json:"status"`
	Data     core.Raw `json:"data"`
	Metadata core.Raw `json:"metadata"`
}

func (t *tree) cadMetrics() *cobra.Command {
	return t.command(spec{
		use: "metrics ID", short: "Show how a CAD agent does: success, trend, durations by method", effect: Reads, args: []string{"cadagent"},
		run: shows(func(c *call, id string) (cad.Metrics, error) { return c.eng.CAD.Metrics(c.ctx, c.by.Tenant, id) }),
	})
}

func (t *tree) cadController() *cobra.Command {
	var most int
	return t.group("controller", "What binds all CAD agents of a tenant",
		t.command(spec{
			use: "show", short: "Show the controller: how many agents work at once, roles, kernels", effect: Reads,
			run: func(c *call, _ []string) error { return c.show(c.eng.CAD.Info(c.by.Tenant)) },
		}),
		t.command(spec{
			use: "max-concurrent N", short: "Set how many CAD agents carry something out at once, 1-50", effect: Writes,
			check: func(_ *call, args []string) error {
				n, err := fmt.Sscanf(args[0], "%d", &most)
				if err != nil || n != 1 || fmt.Sprint(most) != args[0] {
					return usage("max_concurrent_agents", "%q is not allowed; allowed: 1-50", core.Clip(args[0]))
				}
				return nil
			},
			run: func(c *call, _ []string) error {
				info, err := c.eng.CAD.SetMaxConcurrent(c.ctx, c.by, most)
				if err != nil {
					return err
				}
				return c.show(info)
			},
		}),
	)
}
