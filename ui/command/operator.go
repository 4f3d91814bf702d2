package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
)

func (t *tree) operators() *cobra.Command {
	return t.group("operator", "Who may enter the tenant over SSH",
		t.operatorSet(),
		t.operatorHere(),
		t.operatorHandover(),
		t.operatorFigures(),
		lists(t, spec{use: "list", short: "List the operators", effect: Reads}, nil, operatorColumns,
			func(c *call, f core.Filter) (core.Page[operator.Operator], error) {
				all, err := c.eng.Operators.List(c.ctx, c.by.Tenant)
				return core.Pick(all, err, f, func(o operator.Operator) core.Traits {
					return core.Traits{At: o.CreatedAt, Text: o.Name + " " + string(o.Role), Kind: string(o.Role)}
				})
			}),
		t.command(spec{
			use: "show NAME", short: "Show an operator with their keys", effect: Reads,
			run: func(c *call, args []string) error {
				found, err := c.eng.Operators.Operator(c.ctx, c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
		t.command(spec{
			use: "remove NAME", short: "Let an operator in no longer; their sessions end at once", effect: Destroys, role: Admin, confirm: ConfirmAsk,
			run: changes(operatorColumns, func(c *call, name string) (operator.Operator, error) {
				return c.eng.Operators.Remove(c.ctx, c.by, name)
			}),
		}),
	)
}

func (t *tree) operatorSet() *cobra.Command {
	var role string
	var keys []string
	var who operator.Operator
	return t.command(spec{
		use: "set NAME", short: "Let an operator in, in a role and with public keys", effect: Writes, role: Admin,
		long: "Let an operator in over SSH, where `serve --ssh` listens. One of the same name is replaced: keys that are left out\n" +
			"open nothing any more, and sessions that they opened end. Roles, each with those before it: viewer looks, operator\n" +
			"dispatches and stops, approver answers approvals, admin keeps tenants, operators and the store.",
		example: "operator set bob --role approver --key @bob.pub",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &role, "role", "", "viewer", "what they may do: viewer|operator|approver|admin", "viewer", "operator", "approver", "admin")
			f.StringArrayVar(&keys, "key", nil, "public `KEY` as in authorized_keys, or @FILE of such lines; may be repeated")
		},
		check: func(c *call, args []string) error {
			who = operator.Operator{Name: args[0], Role: operator.Role(role)}
			for _, given := range keys {
				text, err := c.text("key", given)
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
		run: func(c *call, _ []string) error {
			made, _, err := c.eng.Operators.Put(c.ctx, c.by, who)
			if err != nil {
				return err
			}
			return record(c, made, operatorColumns(c))
		},
	})
}

func operatorColumns(c *call) []column[operator.Operator] {
	type O = operator.Operator
	return []column[O]{
		{title: "OPERATOR", text: func(o O) string { return o.Name }},
		{title: "ROLE", text: func(o O) string { return string(o.Role) }},
		{title: "AGE", right: true, text: func(o O) string { return c.age(o.CreatedAt) }},
		{title: "KEYS", most: 60, text: func(o O) string {
			prints := make([]string, len(o.Keys))
			for i, k := range o.Keys {
				prints[i] = k.Fingerprint
			}
			return strings.Join(prints, " ")
		}},
	}
}
