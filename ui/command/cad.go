package command

import "github.com/spf13/cobra"

func (t *tree) cad() *cobra.Command {
	return t.group("cad", "Agents that model solids together",
		t.cadRoles(),
		t.cadAgents(),
		t.cadOp(),
		t.cadMetrics(),
		t.cadMessage(),
		t.cadMessages(),
		t.cadWorkspaces(t.cadAmendments()...),
		t.cadDecompose(),
		t.cadAssign(),
		t.cadScenarios(),
		t.cadWorkflows(),
		t.cadView(),
		t.cadController(),
		t.cadEnv(),
	)
}
