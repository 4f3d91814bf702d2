package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/session"
)

func (t *tree) sessions() *cobra.Command {
	return t.group("session", "Time-bounded operating contexts",
		t.sessionCreate(),
		t.command(spec{
			use: "start ID", short: "Start a session: its tasks may run", effect: Writes, args: []string{"session"},
			run: changes(sessionColumns, func(c *call, id string) (session.Session, error) {
				return c.eng.Swarm.Sessions.Start(c.ctx, c.by, id)
			}),
		}),
		t.command(spec{
			use: "pause ID", short: "Pause a session; it shows pausing until all have acknowledged", effect: Writes, args: []string{"session"},
			flags: withReason,
			run: changes(sessionColumns, func(c *call, id string) (session.Session, error) {
				return c.eng.Swarm.Sessions.Pause(c.ctx, c.by, id, c.reason())
			}),
		}),
		t.command(spec{
			use: "resume ID", short: "Resume a paused session", effect: Writes, args: []string{"session"},
			run: changes(sessionColumns, func(c *call, id string) (session.Session, error) {
				return c.eng.Swarm.Sessions.Resume(c.ctx, c.by, id)
			}),
		}),
		t.command(spec{
			use: "stop ID", short: "Stop a session for good and cancel what is left", effect: Destroys, confirm: ConfirmAsk, args: []string{"session"},
			flags: withReason,
			run: changes(sessionColumns, func(c *call, id string) (session.Session, error) {
				return c.eng.Swarm.Sessions.Stop(c.ctx, c.by, id, c.reason())
			}),
		}),
		lists(t, spec{use: "list", short: "List the sessions, newest first", effect: Reads}, sessionStates(), sessionColumns,
			func(c *call, f core.Filter) (core.Page[session.Session], error) {
				return c.eng.Swarm.Sessions.List(c.ctx, c.by.Tenant, f)
			}),
		t.command(spec{
			use: "show ID", short: "Show a session", effect: Reads, args: []string{"session"},
			run: shows(func(c *call, id string) (session.Session, error) {
				return c.eng.Swarm.Sessions.Get(c.ctx, c.by.Tenant, id)
			}),
		}),
	)
}

func (t *tree) sessionCreate() *cobra.Command {
	var given, name string
	var limits budget.Budget
	return t.command(spec{
		use: "create", short: "Make a session", effect: Writes,
		long:    "Make a session. --budget takes limits like tokens=100000,cost=2.50,tasks=50,wall=2h.",
		example: "session create --name night --budget tasks=50,wall=2h",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&given, "budget", "", "`LIMITS`: tokens=N,cost=USD,tasks=N,wall=DURATION")
			f.StringVar(&name, "name", "", "a `NAME` for lists and swarm files")
		},
		check: func(*call, []string) (err error) {
			limits, err = parseBudget(given)
			return err
		},
		run: func(c *call, _ []string) error {
			made, err := c.eng.Swarm.Sessions.Create(c.ctx, c.by, name)
			if err != nil {
				return err
			}
			if given != "" {
				limits.TenantID, limits.Subject = c.by.Tenant, "session:"+made.SessionID
				if _, err := c.eng.Swarm.Budgets.Set(c.ctx, c.by, limits); err != nil {
					return err
				}
			}
			return record(c, made, sessionColumns(c))
		},
	})
}

func sessionStates() []string {
	return words(session.Created, session.Running, session.Paused, session.Stopped)
}

func sessionColumns(c *call) []column[session.Session] {
	return []column[session.Session]{
		{title: "SESSION", text: func(s session.Session) string { return s.SessionID }},
		{title: "NAME", most: 24, text: func(s session.Session) string { return s.Name }},
		{title: "STATE", text: func(s session.Session) string {
			if n := len(s.Pausing); n > 0 {
				return s.Shown() + " (" + strconv.Itoa(n) + ")"
			}
			return s.Shown()
		}},
		{title: "AGE", right: true, text: func(s session.Session) string { return c.age(s.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(s session.Session) string { return stamp(s.CreatedAt) }},
		{title: "UPDATED", wide: true, text: func(s session.Session) string { return stamp(s.UpdatedAt) }},
		{title: "WAITING FOR", wide: true, text: func(s session.Session) string { return strings.Join(s.Pausing, " ") }},
		{title: "REASON", most: 40, text: func(s session.Session) string { return s.Reason }},
	}
}

// parseBudget reads tokens=N,cost=USD,tasks=N,wall=DURATION.
func parseBudget(text string) (budget.Budget, error) {
	var b budget.Budget
	if text == "" {
		return b, nil
	}
	for _, part := range strings.Split(text, ",") {
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
			d, err = parseSpan(value)
			b.WallS = seconds(d)
		default:
			return b, usage("budget", "--budget: %q is not allowed; allowed: tokens=N,cost=USD,tasks=N,wall=DURATION", clip(part))
		}
		if err != nil {
			return b, usage("budget", "--budget: %s=%s is not a value; allowed: tokens=N,cost=USD,tasks=N,wall=DURATION", clip(key), clip(value))
		}
	}
	return b, positive(b)
}

// seconds rounds up, so that a limit below a second is still a limit.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// words turns enum values into plain strings.
func words[S ~string](values ...S) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}
