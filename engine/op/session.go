package op

import (
	"context"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/session"
)

func sessions() []*Op {
	type S = session.Session
	id := arg("ID", "session")
	return []*Op{
		sessionCreate(),
		change(Op{Name: "session start", Short: "Start a session: its tasks may run", Undo: "session pause", Done: "started"}, id,
			func(ctx context.Context, c *Call, id string) (S, error) { return c.Swarm.Sessions.Start(ctx, c.By, id) }),
		changeWhy(Op{Name: "session pause", Short: "Pause a session; it shows pausing until all have acknowledged", Undo: "session resume", Done: "asked to pause:"}, id,
			withReason(func(c *Call) callerWhy[S] { return c.Swarm.Sessions.Pause })),
		change(Op{Name: "session resume", Short: "Resume a paused session", Undo: "session pause", Done: "resumed"}, id,
			byCaller(func(c *Call) callerAct[string, S] { return c.Swarm.Sessions.Resume })),
		changeWhy(Op{Name: "session stop", Short: "Stop a session for good and cancel what is left", Effect: Destroys, Confirm: ConfirmAsk, Done: "stopped"}, id,
			withReason(func(c *Call) callerWhy[S] { return c.Swarm.Sessions.Stop })),
		list(Op{
			Name: "session list", Short: "List the sessions, newest first",
			Statuses: core.Strings(session.Created, session.Running, session.Paused, session.Stopped),
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[S]] { return c.Swarm.Sessions.List })),
		show(Op{Name: "session show", Short: "Show a session"}, id,
			byTenant(func(c *Call) tenantRead[string, S] { return c.Swarm.Sessions.Get })),
	}
}

func sessionCreate() *Op {
	var given, name string
	var limits budget.Budget
	return define(Op{
		Name: "session create", Short: "Make a session", Undo: "session stop", Done: "created",
		Long:    "Make a session. --budget takes limits like tokens=100000,cost=2.50,tasks=50,wall=2h.",
		Example: "session create --name night --budget tasks=50,wall=2h",
		Params: []*Param{
			flag(&given, "budget", "`LIMITS`: tokens=N,cost=USD,tasks=N,wall=DURATION"),
			flag(&name, "name", "a `NAME` for lists and swarm files"),
		},
		Check: func(*Call) (err error) {
			limits, err = ParseBudget(given)
			return err
		},
	}, func(ctx context.Context, c *Call) (session.Session, error) {
		made, err := c.Swarm.Sessions.Create(ctx, c.By, name)
		if err == nil && given != "" {
			limits.TenantID, limits.Subject = c.By.Tenant, "session:"+made.SessionID
			_, err = c.Swarm.Budgets.Set(ctx, c.By, limits)
		}
		return made, err
	})
}

// ParseBudget reads tokens=N,cost=USD,tasks=N,wall=DURATION; none of "".
func ParseBudget(text string) (budget.Budget, error) {
	var b budget.Budget
	if text == "" {
		return b, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch strings.TrimSpace(key) {
		case "tokens":
			b.Tokens, err = strconv.ParseInt(value, 10, 64)
		case "tasks":
			b.Tasks, err = strconv.ParseInt(value, 10, 64)
		case "cost":
			b.CostUSD, err = strconv.ParseFloat(value, 64)
		case "wall":
			var d time.Duration
			d, err = core.ParseSpan(value)
			b.WallS = core.Seconds(d)
		default:
			return b, usage("budget", "--budget: %q is not allowed; allowed: tokens=N,cost=USD,tasks=N,wall=DURATION", core.Clip(part))
		}
		if err != nil {
			return b, usage("budget", "--budget: %s=%s is not a value; allowed: tokens=N,cost=USD,tasks=N,wall=DURATION", core.Clip(key), core.Clip(value))
		}
	}
	return b, bound.Check(&b)
}
