package op

import (
	"cmp"
	"context"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/presence"
)

func operators() []*Op {
	return []*Op{
		operatorSet(),
		operatorAway(),
		picked(Op{Name: "operator list", Short: "List the operators"},
			func(c *Call) tenantList[operator.Operator] { return c.Operators.List },
			func(_ *Call, o operator.Operator) core.Traits {
				return core.Traits{At: o.CreatedAt, Text: o.Name + " " + string(o.Role), Kind: string(o.Role)}
			}),
		show(Op{Name: "operator show", Short: "Show an operator with their keys"}, arg("NAME", ""),
			byTenant(func(c *Call) tenantRead[string, operator.Operator] { return c.Operators.Operator })),
		change(Op{
			Name: "operator remove", Short: "Let an operator in no longer; their sessions end at once", Done: "removed",
			Effect: Destroys, Role: Admin, Confirm: ConfirmAsk,
		}, arg("NAME", ""), byCaller(func(c *Call) callerAct[string, operator.Operator] { return c.Operators.Remove })),
		list(Op{Name: "operator here", Short: "List who has a cockpit open on the running engine"},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[presence.Visitor], error) {
				return core.Pick(c.Presence.Here(c.By.Tenant), nil, f, func(v presence.Visitor) core.Traits {
					return core.Traits{At: v.Since, Text: v.Name + " " + string(v.Door), Kind: string(v.Door)}
				})
			}),
		operatorHandover(),
	}
}

// operatorAway has somebody stand in for an operator.
func operatorAway() *Op {
	var whose, to string
	var span time.Duration
	var end bool
	var o *Op
	o = define(Op{
		Name: "operator away", Short: "Have another operator answer for you while you are away", Effect: Writes, Role: Approver, Done: "noted",
		Long: "Have another operator answer what a rule asks you or a group of yours, until you are back. Below critical risk only:\n" +
			"there nobody stands in for another. What they answer is recorded as theirs, for you.",
		Example: "operator away --to bob --for 48h\noperator away --end",
		Params: []*Param{
			flag(&to, "to", "the operator `NAME` who stands in"),
			flag(&span, "for", "for how long: `DURATION`, at most 90 days (2160h)"),
			flag(&end, "end", "you are back"),
			flag(&whose, "of", "the operator `NAME` who is away, where that is not you (rights of admin)"),
		},
		Check: func(*Call) error {
			switch {
			case end == (to != "" || span != 0):
				return usage("to", "--to NAME and --for DURATION, or --end")
			case !end && (to == "" || span == 0):
				return usage("to", "--to NAME needs --for DURATION")
			case whose != "":
				o.Role = Admin
			}
			return nil
		},
	}, func(ctx context.Context, c *Call) (operator.Operator, error) {
		return c.Operators.Away(ctx, c.By, cmp.Or(whose, c.By.Name), to, c.Now.Add(span))
	})
	return o
}

func operatorSet() *Op {
	rights := "viewer"
	var keys, users, groups []string
	var who operator.Operator
	return define(Op{
		Name: "operator set", Short: "Make a person known, with rights, by users of this machine and public keys", Role: Admin, Undo: "operator remove", Done: "let in",
		Long: "Make a person known. With a key they enter over SSH, where `serve --ssh` listens. All their users and keys count as\n" +
			"one person, wherever two must agree. One of the same name is replaced: keys that are left out open nothing any more,\n" +
			"and sessions that they opened end. Rights, each with those before it: viewer looks, operator dispatches and stops,\n" +
			"approver answers approvals, admin keeps tenants, operators and the store.",
		Example: "operator set bob --rights approver --key @bob.pub\noperator set ann --rights admin --uid 1000 --key @ann.pub --group on-call",
		Params: []*Param{
			place(&who.Name, "NAME", ""),
			{Name: "rights", Also: "role", About: "what they may: viewer|operator|approver|admin", Enum: []string{"viewer", "operator", "approver", "admin"}, Into: &rights},
			{Name: "uid", About: "`UID` of a user of this machine who is that person, or UID@ENGINE of that of another engine; may be repeated", Into: &users},
			{Name: "key", About: "public `KEY` as in authorized_keys, or @FILE of such lines; may be repeated", Into: &keys, Whole: true},
			{Name: "group", About: "`GROUP` that a rule may ask for; may be repeated", Into: &groups, Whole: true},
		},
		Check: func(c *Call) error {
			who.Role, who.Users, who.Keys, who.Groups = operator.Role(rights), nil, nil, groups
			for _, uid := range users {
				u, err := operator.ParseUser(uid)
				if err != nil {
					return err
				}
				who.Users = append(who.Users, u)
			}
			for _, given := range keys {
				text, err := c.Read("key", given)
				if err != nil {
					return err
				}
				for line := range strings.Lines(string(text)) {
					if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
						continue
					}
					k, err := operator.ParseKey(line)
					if err != nil {
						return err
					}
					who.Keys = append(who.Keys, k)
				}
			}
			return who.Check()
		},
	}, func(ctx context.Context, c *Call) (operator.Operator, error) {
		made, _, err := c.Operators.Put(ctx, c.By, who)
		return made, err
	})
}

// Role is what a person is allowed to do; each includes those before it.
type Role string

// The roles, least first. "" is that of who owns the data file: all.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Approver Role = "approver"
	Admin    Role = "admin"
)

// Includes reports whether someone with role r may do what least may.
func (r Role) Includes(least Role) bool { return r.rank() >= least.rank() }

func (r Role) rank() int {
	switch r {
	case Viewer:
		return 0
	case Operator:
		return 1
	case Approver:
		return 2
	case Admin, "":
		return 3
	}
	return -1
}

func operatorHandover() *Op {
	var to string
	since := Ago{Text: "8h"}
	var o *Op
	o = define(Op{
		Name: "operator handover", Short: "Report what is open and what happened, for the next operator", Effect: Reads,
		Long: "Report open approvals, what was decided and what failed since, agents in trouble, budgets near a limit, the\n" +
			"emergency stop and running work. --to NAME also records in the audit log that NAME takes over; it moves and\n" +
			"escalates nothing.",
		Example: "operator handover --since 8h --to carol",
		Params: []*Param{
			flag(&since, "since", "from when on: a `TIME` (RFC 3339) or a duration such as 8h"),
			flag(&to, "to", "record that this `NAME` takes over"),
		},
		Check: func(*Call) error {
			if to == "" {
				return nil
			}
			if err := operator.CheckName("to", to); err != nil {
				return err
			}
			o.Effect, o.Role = Writes, Operator
			return nil
		},
	}, func(ctx context.Context, c *Call) (engine.Handover, error) {
		if to == "" {
			return c.Handover(ctx, c.By.Tenant, since.Time)
		}
		return c.HandOver(ctx, c.By, since.Time, to)
	})
	return o
}
