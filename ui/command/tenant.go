package command

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
)

// currentFile keeps which tenant each user works in, beside the data file.
func (c *call) currentFile() string { return c.g.Data + ".run/current" }

// currents are the tenants that users work in where none is named; a file that can't be
// read has none.
func (c *call) currents() map[string]string {
	of := map[string]string{}
	if data, err := os.ReadFile(c.currentFile()); err != nil || core.Decode(data, &of) != nil {
		return map[string]string{}
	}
	return of
}

func (t *tree) tenantUse() *cobra.Command {
	return t.command(spec{
		use: "use ID", short: "Work in a tenant where no other is named", effect: Writes, args: []string{"tenant"}, ownScope: true,
		long: "Work in a tenant where neither --tenant nor SWARMDECK_TENANT names another: each user of each data file in one. Until it is\n" +
			"said, that is the only one, or the one that the first command made.",
		run: func(c *call, args []string) error {
			c.g.Tenant = args[0]
			if err := c.scope(); err != nil {
				return err
			}
			of := c.currents()
			by, err := c.operator()
			if err != nil {
				return err
			}
			of[cmp.Or(by.Proof, by.Name)] = c.by.Tenant
			if err := replaceFile(c.currentFile(), core.MustEncode(of)); err != nil {
				return fileError("current", c.currentFile(), err)
			}
			return c.say(map[string]string{"tenant_id": c.by.Tenant}, "%s is your tenant here", c.by.Tenant)
		},
	})
}
