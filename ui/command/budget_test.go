package command_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestABudgetIsOfAnAgentThatIsThere(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	d.line("tenant create t_other")
	d.line("agent create bob --tenant t_other --project p -- true")
	code, message, _ := d.fails(1, "budget set agent:nobody --tasks 1 --tenant t_test")
	expect.True(t, code == "NOT_FOUND" && strings.Contains(message, "nobody"), "%s %s", code, message)
	code, message, _ = d.fails(1, "budget set agent:bob --tasks 1 --tenant t_test")
	expect.True(t, code == "DENIED", "another tenant's: %s %s", code, message)
	expect.Has(t, d.line("audit list --kind tenant.violation --tenant t_test -o json"), "bob", "not in the log")
	d.line("budget set agent:bob --tasks 1 --tenant t_other")
	d.line("agent delete bob --yes --tenant t_other")
	d.line("budget set agent:bob --tasks 0 --tenant t_other") // its budget may outlive it, and goes
	out := d.line("budget list --tenant t_other")
	expect.True(t, !strings.Contains(out, "bob"), "still there: %s", out)
}
