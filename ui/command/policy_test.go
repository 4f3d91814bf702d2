package command_test

import (
	"path/filepath"

	"swarmdeck/expect"
)

// policies is a policy's whole life by command.
func (w *walk) policies() {
	dir := expect.Of(filepath.Abs("../../examples/policies"))(w.t)
	p := str(w.do("policy propose " + dir + "/writes.yaml --tests " + dir + "/writes.jsonl")["policy_id"])
	sum, ok := w.do("policy test " + p)["tests_summary"].(map[string]any)
	expect.True(w.t, ok && sum["failed"] == 0.0, "tests: %v", sum)
	w.text("policy test "+p, "RESULT", "6 of 6 cases pass")
	w.do("policy backtest " + p + " --last 50")
	w.text("policy backtest "+p+" --last 50", "decisions would change")
	w.do("policy terms --jailed on")
	expect.Row(w.t, w.do("policy activate "+p), "status", "active")
	w.do("policy list --status active")
	w.do("policy show " + p)
	w.text("policy list --status active", p, "writes")
	w.text("policy show "+p, "prod.closed")
	expect.Row(w.t, w.do(`policy decide --input '{"action":{"tool":"fs.write","args":{"path":"/srv/prod/x"}}}'`), "decision", "deny", "rule_id", "prod")
	w.do("policy restore default")
	expect.Row(w.t, w.do("policy withdraw "+p), "status", "withdrawn")
}
