package command

import "github.com/spf13/cobra"

func (t *tree) cad() *cobra.Command {
	return t.group("cad", "Agents that model solids together", t.cadEnv())
}
