package command_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestAnAgentIsMadeLikeAnother(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	d.line("agent create ada --project p --role r --env A=1 -- cat -u")
	d.line(`agent create bob --project p --role r --shell 'head -n 1 | cat'`)
	for line, want := range map[string]string{
		"agent create cy --project q --like ada":         "[cat -u] " + d.dir,
		"agent create di --project q --like bob":         "[sh -c head -n 1 | cat] " + d.dir,
		"agent create ed --project q --like ada --dir /": "[cat -u] /",
	} {
		got := d.object(line)
		expect.True(t, fmt.Sprint(got["command"], " ", got["dir"]) == want && fmt.Sprint(got["runtime"]) == "exec", "%s: %v", line, got)
		a := fmt.Sprint(got["env"])
		expect.True(t, strings.Contains(want, "cat -u") == (a == "map[A:[hidden]]"), "%s: its environment is %s", line, a)
	}
	for line, want := range map[string]string{
		"agent create x --project p --like ada -- cat":         "like",
		"agent create x --project p --like ada --runtime exec": "like",
		"agent create x --project p --shell cat -- cat":        "command",
		"agent create x --project p --role r":                  "command",
		"agent create a_b --project p -- cat":                  "name",
	} {
		code, message, details := d.fails(2, line)
		expect.True(t, code == "INVALID_INPUT" && details["field"] == want, "%s: %s %s %v", line, code, message, details)
	}
	code, _, _ := d.fails(1, "agent create x --project p --like nobody")
	expect.True(t, code == "NOT_FOUND", "like nobody: %s", code)
	d.write("table", "schema: 1\nname: tiny\nrules:\n  - {id: all, gates: [tool.call], when: \"true\", decision: approve, reason_code: tiny.all, risk: low}\n")
	expect.Row(t, d.object("policy propose table --kind rules"), "kind", "rules", "name", "tiny")
}
