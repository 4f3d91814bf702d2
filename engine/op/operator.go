package op

import (
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/presence"
)

func operators() []*Op {
	return []*Op{
		operatorSet(),
		list(Op{Name: "operator list", Short: "List the operators"},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[operator.Operator], error) {
				all, err := c.Operators.List(ctx, c.By.Tenant)
				return core.Pick(all, err, f, func(o operator.Operator) core.Traits {
					return core.Traits{At: o.CreatedAt, Text: o.Name + " " + string(o.Role), Kind: string(o.Role)}
				})
			}),
		show(Op{Name: "operator show", Short: "Show an operator with their keys"}, arg("NAME", ""),
			func(ctx context.Context, c *Call, name string) (operator.Operator, error) {
				return c.Operators.Operator(ctx, c.By.Tenant, name)
			}),
		change(Op{
			Name: "operator remove", Short: "Let an operator in no longer; their sessions end at once", Done: "removed",
			Effect: Destroys, Role: Admin, Confirm: ConfirmAsk,
		}, arg("NAME", ""), func(ctx context.Context, c *Call, name string) (operator.Operator, error) {
			return c.Operators.Remove(ctx, c.By, name)
		}),
		list(Op{Name: "operator here", Short: "List who has a cockpit open on the running engine"},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[presence.Visitor], error) {
				return core.Pick(c.Presence.Here(c.By.Tenant), nil, f, func(v presence.Visitor) core.Traits {
					return core.Traits{At: v.Since, Text: v.Name + " " + string(v.Door), Kind: string(v.Door)}
				})
			}),
		operatorHandover(),
		operatorFigures(),
	}
}

func operatorSet() *Op {
	role := "viewer"
	var keys []string
	var who operator.Operator
	return define(Op{
		Name: "operator set", Short: "Let an operator in, in a role and with public keys", Role: Admin, Undo: "operator remove", Done: "let in",
		Long: "Let an operator in over SSH, where `serve --ssh` listens. One of the same name is replaced: keys that are left out\n" +
			"open nothing any more, and sessions that they opened end. Roles, each with those before it: viewer looks, operator\n" +
			"dispatches and stops, approver answers approvals, admin keeps tenants, operators and the store.",
		Example: "operator set bob --role approver --key @bob.pub",
		Params: []*Param{
			place(&who.Name, "NAME", ""),
			flag(&role, "role", "what they may do: viewer|operator|approver|admin").enum("viewer", "operator", "approver", "admin"),
			{Name: "key", About: "public `KEY` as in authorized_keys, or @FILE of such lines; may be repeated", Into: &keys, Whole: true},
		},
		Check: func(c *Call) error {
			who.Role, who.Keys = operator.Role(role), nil
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
