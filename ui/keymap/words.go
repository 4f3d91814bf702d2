package keymap

import "strconv"

// Words is the vocabulary of the cockpit.
func Words() Vocabulary {
	v := Vocabulary{
		Scopes: []string{
			"global", "list", "sheet", "fleet", "agent", "tasks", "task", "approvals", "card", "sessions", "session", "tenants", "engines", "engine", "audit", "event",
			"decisions", "decision", "messages", "message",
			"skills", "skill", "executions", "execution", "subagents", "subagent", "bus", "bus-message", "subscriptions",
			"cad-agents", "cad-agent", "workspaces", "workspace", "workflows", "workflow", "conflicts", "conflict", "solid",
			"overview", "timeline", "story", "record", "lineage", "compare", "policies", "policy", "diff", "reviews", "review", "terminal", "terminal-typing",
		},
		Actions: []string{
			"up", "down", "left", "right", "top", "bottom", "half-up", "half-down", "page-up", "page-down", "open", "back", "quit",
			"mark", "mark-all", "show-all", "clear-marks", "filter", "sort", "next-match", "prev-match", "follow", "wrap", "fold", "fold-all",
			"palette", "help", "panes", "messages", "tenants", "redraw", "suspend", "mouse", "undo",
			"next-need", "copy", "copy-row", "links", "alone", "focus-next", "focus-prev", "history-back", "history-forward", "last-view",
			"approve", "deny", "abort", "edit", "always", "defer", "pause", "estop", "invoke", "create", "pager",
			"show-skills", "show-executions", "show-subagents", "show-bus", "show-subscriptions", "show-engines",
			"show-cad-agents", "show-workspaces", "show-workflows", "show-conflicts", "view", "view-front", "view-top", "view-right", "view-iso",
			"view-four", "zoom-in", "zoom-out", "roll-left", "roll-right", "pan-left", "pan-right", "pan-up", "pan-down", "mode", "next-part",
			"show-overview", "span", "by", "timeline", "story", "since", "work", "review", "swap", "show-reviews", "compare", "travel", "now", "fork", "cases", "backtest", "show-policies",
			"next-hunk", "prev-hunk", "next-file", "prev-file", "side-by-side", "files", "range", "viewed", "arguments", "terminal", "type", "detach", "edit-file",
		},
	}
	for n := range 9 {
		v.Actions = append(v.Actions, "goto-"+strconv.Itoa(n+1))
	}
	return v
}
