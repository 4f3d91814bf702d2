package command

import (
	"regexp"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/expect"
	"swarmdeck/ui/command/swarmfile"
)

// What help shows of a swarm file is one, and has each name that a swarm file knows.
func TestHelpShowsAWholeSwarmFile(t *testing.T) {
	text, _ := topic("swarm-file")
	vars := swarmfile.Vars{Dir: "/srv", CWD: "/home"}
	_, err := swarmfile.Load("swarm.yaml", []byte(text), vars)
	expect.No(t, err)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := regexp.MustCompile(`^( *)(- )?\{?[a-z_]+: *(.?)`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		odd := m[1] + "zz: 1"
		at := i
		if m[2] != "" {
			odd, at = m[1]+"  zz: 1", i+1
		}
		if strings.HasPrefix(strings.TrimLeft(line, " "), "- {") {
			continue
		}
		all := append(append(append([]string{}, lines[:at]...), odd), lines[at:]...)
		_, err := swarmfile.Load("swarm.yaml", []byte(strings.Join(all, "\n")), vars)
		expect.Must(t, err != nil, "%s is allowed in line %d", odd, at+1)
		problems, _ := core.AsError(err).Details["problems"].([]document.Problem)
		for _, p := range problems {
			for name := range strings.SplitSeq(p.Allowed, ", ") {
				expect.True(t, p.Value != "zz" || regexp.MustCompile(`\b`+name+`\b`).MatchString(text), "help swarm-file lacks %s of %s", name, p.Field)
			}
		}
	}
}
