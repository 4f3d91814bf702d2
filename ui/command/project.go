package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// projectLearn asks a server what agents can be made of before there is one.
func (t *tree) projectLearn() *cobra.Command {
	var options core.Raw
	return t.command(spec{
		use: "learn RUNTIME", short: "Ask a runtime's server what it offers", effect: Writes, args: []string{"runtime"},
		long: "Ask the server of a runtime for its projects and their roles, and keep them for lists and forms. It needs the\n" +
			"options that an agent would be given, so that the server is found. A runtime without a server offers nothing.",
		example: `project learn coder --options '{"url":"https://coder.example.com","token_env":"CODER_TOKEN"}'`,
		flags: func(f *pflag.FlagSet) {
			f.String("options", "", "`JSON` object for the runtime, as for agent create")
		},
		check: func(c *call, _ []string) (err error) {
			if arg := c.flag("options"); arg != "" {
				options, err = c.document("options", arg)
			}
			return err
		},
		run: func(c *call, args []string) error {
			if err := c.reach(args[0], options); err != nil {
				return err
			}
			offers, err := c.eng.Fleet.Offers(c.ctx, c.by, args[0], options)
			if err != nil {
				return err
			}
			var all []offer
			for _, o := range offers {
				made := offer{Project: o.Project, Roles: []string{}}
				for _, r := range o.Roles {
					made.Roles = append(made.Roles, r.Name)
				}
				all = append(all, made)
			}
			return list(c, core.Page[offer]{Items: all}, offerColumns)
		},
	})
}

// offer is a project with the names of its roles.
type offer struct {
	fleet.Project
	Roles []string `json:"roles"`
}

var offerColumns = []column[offer]{
	{title: "PROJECT", text: func(o offer) string { return o.Name }},
	{title: "ROLES", text: func(o offer) string { return strings.Join(o.Roles, ", ") }},
	{title: "ID", wide: true, text: func(o offer) string { return o.ID }},
	{title: "DESCRIPTION", wide: true, most: 60, text: func(o offer) string { return o.Description }},
}

func projectColumns(*call) []column[fleet.Project] {
	type P = fleet.Project
	return []column[P]{
		{title: "PROJECT", text: func(p P) string { return p.Name }},
		{title: "ID", wide: true, text: func(p P) string { return p.ID }},
		{title: "DESCRIPTION", most: 60, text: func(p P) string { return p.Description }},
	}
}

func roleColumns(*call) []column[fleet.Role] {
	type R = fleet.Role
	return []column[R]{
		{title: "ROLE", text: func(r R) string { return r.Name }},
		{title: "PROJECT", text: func(r R) string { return r.ProjectName }},
		{title: "ID", wide: true, text: func(r R) string { return r.ID }},
	}
}
