package op

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
)

func roleSet() *Op {
	var t fleet.Template
	var l fleet.Limits
	var project, shell string
	var line, after Words
	var wall time.Duration
	command := flag(&line, "command", "`COMMAND` with arguments as one string, split like a shell does").names(reach.Command).from("json")
	rest := &Param{Name: "argv", About: "COMMAND", Rest: true, Into: (*[]string)(&after), Names: reach.Command}
	return change(Op{
		Name: "role set", Short: "Say what agents of a role are made with", Role: Admin, Done: "set",
		Long: "Say what agents of a role are made with: agent create --from ROLE takes it. It replaces all that was said before;\n" +
			"agents that there are stay as they are. The prompt stands before each of their tasks. Calls of tools that the role\n" +
			"does not have are denied; without --tool it has all. The budget is that of each agent.",
		Example: "role set coder --project web --runtime acp --prompt @coder.md --cost 5 -- claude-agent-acp",
		Params: []*Param{
			rest, command,
			need(&project, "project", "`PROJECT` it belongs to").from("project").bounds(1, 64),
			flag(&t.Runtime, "runtime", "what runs them: exec, acp, terminal, coder").enum("exec", "acp", "terminal", "coder"),
			flag(&shell, "shell", "shell `LINE` that is their command, run by sh -c").names(reach.Command),
			flag(&t.Options, "options", "`JSON` object for the runtime, as for agent create"),
			flag(&t.Prompt, "prompt", "`TEXT` that stands before each of their tasks, or @FILE"),
			flag(&t.Profile, "profile", "what their processes reach: reader, worker").enum("reader", "worker"),
			{Name: "tool", About: "`NAME` of a tool that they may ask for, a last * for any rest; may be repeated", Into: &t.Tools, Whole: true},
			flag(&l.Tokens, "tokens", "tokens of each at most `N`"),
			flag(&l.CostUSD, "cost", "cost of each at most `USD`"),
			flag(&l.Tasks, "tasks", "tasks of each at most `N`"),
			flag(&wall, "wall", "running time of each at most `DURATION`"),
		},
		Check: func(c *Call) error {
			if named := rest.Given || len(line) > 0; rest.Given && len(line) > 0 || named && shell != "" {
				return usage("command", "role set: give the command by --command, by --shell or after --, not both")
			}
			if t.Command = append(line, after...); shell != "" {
				t.Command = []string{"sh", "-c", shell}
			}
			text, err := c.Read("prompt", t.Prompt)
			t.Prompt = string(text)
			return err
		},
	}, arg("ROLE", "role"), func(ctx context.Context, c *Call, role string) (fleet.Role, error) {
		if err := c.Reach(t.Runtime, t.Options); t.Runtime != "" && err != nil {
			return fleet.Role{}, err
		}
		if l.WallS = core.Seconds(wall); l != (fleet.Limits{}) {
			t.Limits = &l
		}
		r, _, err := c.Fleet.PutRole(ctx, c.By, project, role, t)
		return r, err
	})
}
