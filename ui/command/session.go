package command

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

func sessionStates() []string {
	return words(swarm.SessionCreated, swarm.SessionRunning, swarm.SessionPaused, swarm.SessionStopped)
}

func (t *tree) sessions() *cobra.Command {
	var l filter
	var budget, name string
	return t.group("session", "Time-bounded operating contexts",
		t.command(spec{
			use: "create", short: "Make a session", effect: Writes,
			long: "Make a session. --budget takes limits like tokens=100000,cost=2.50,tasks=50,wall=2h.",
			flags: func(f *pflag.FlagSet) {
				f.StringVar(&budget, "budget", "", "`LIMITS`: tokens=N,cost=USD,tasks=N,wall=DURATION")
				f.StringVar(&name, "name", "", "a `NAME` for lists and swarm files")
			},
			run: func(c *call, _ []string) error {
				limits, err := parseBudget(budget)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				made, err := eng.Swarm.CreateSession(c.ctx, by, name)
				if err != nil {
					return err
				}
				if budget != "" {
					limits.TenantID, limits.Subject = by.Tenant, "session:"+made.SessionID
					if _, err := eng.Swarm.SetBudget(c.ctx, by, limits); err != nil {
						return err
					}
				}
				return record(c, made, c.sessionColumns())
			},
		}),
		t.sessionVerb("start ID", "Start a session: its tasks may run", ConfirmNone, false,
			func(ctx context.Context, eng *engine.Engine, by core.Caller, id, _ string) (swarm.Session, error) {
				return eng.Swarm.StartSession(ctx, by, id)
			}),
		t.sessionVerb("pause ID", "Pause a session; it shows pausing until all have acknowledged", ConfirmNone, true,
			func(ctx context.Context, eng *engine.Engine, by core.Caller, id, reason string) (swarm.Session, error) {
				return eng.Swarm.PauseSession(ctx, by, id, reason)
			}),
		t.sessionVerb("resume ID", "Resume a paused session", ConfirmNone, false,
			func(ctx context.Context, eng *engine.Engine, by core.Caller, id, _ string) (swarm.Session, error) {
				return eng.Swarm.ResumeSession(ctx, by, id)
			}),
		t.sessionVerb("stop ID", "Stop a session for good and cancel what is left", ConfirmAsk, true,
			func(ctx context.Context, eng *engine.Engine, by core.Caller, id, reason string) (swarm.Session, error) {
				return eng.Swarm.StopSession(ctx, by, id, reason)
			}),
		t.command(spec{
			use: "list", short: "List the sessions, newest first", effect: Reads,
			flags: func(f *pflag.FlagSet) { l.bind(f, sessionStates()...) },
			run: func(c *call, _ []string) error {
				f, err := l.read(c, sessionStates()...)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				page, err := eng.Swarm.Sessions(c.ctx, by.Tenant, f)
				if err != nil {
					return err
				}
				return list(c, page, c.sessionColumns())
			},
		}),
		t.command(spec{
			use: "show ID", short: "Show a session", effect: Reads, args: []string{"session"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				found, err := eng.Swarm.Session(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
	)
}

type sessionFunc func(ctx context.Context, eng *engine.Engine, by core.Caller, id, reason string) (swarm.Session, error)

func (t *tree) sessionVerb(use, text string, confirm Confirm, reasoned bool, do sessionFunc) *cobra.Command {
	var reason string
	s := spec{
		use: use, short: text, effect: Writes, confirm: confirm, args: []string{"session"},
		run: func(c *call, args []string) error {
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			changed, err := do(c.ctx, eng, by, args[0], reason)
			if err != nil {
				return err
			}
			return record(c, changed, c.sessionColumns())
		},
	}
	if confirm != ConfirmNone {
		s.effect = Destroys
	}
	if reasoned {
		s.flags = func(f *pflag.FlagSet) { f.StringVar(&reason, "reason", "", "why, for the record") }
	}
	return t.command(s)
}

func (c *call) sessionColumns() []column[swarm.Session] {
	return []column[swarm.Session]{
		{title: "SESSION", text: func(s swarm.Session) string { return s.SessionID }},
		{title: "NAME", most: 24, text: func(s swarm.Session) string { return s.Name }},
		{title: "STATE", text: func(s swarm.Session) string {
			if n := len(s.Pausing); n > 0 {
				return s.Shown() + " (" + strconv.Itoa(n) + ")"
			}
			return s.Shown()
		}},
		{title: "AGE", right: true, text: func(s swarm.Session) string { return c.age(s.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(s swarm.Session) string { return stamp(s.CreatedAt) }},
		{title: "UPDATED", wide: true, text: func(s swarm.Session) string { return stamp(s.UpdatedAt) }},
		{title: "WAITING FOR", wide: true, text: func(s swarm.Session) string { return strings.Join(s.Pausing, " ") }},
		{title: "REASON", most: 40, text: func(s swarm.Session) string { return s.Reason }},
	}
}

// parseBudget reads tokens=N,cost=USD,tasks=N,wall=DURATION.
func parseBudget(text string) (swarm.Budget, error) {
	var b swarm.Budget
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
