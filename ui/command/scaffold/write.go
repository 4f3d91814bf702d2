package scaffold

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

// reviewing is what a reviewer is told before each of its tasks.
const reviewing = "Review what was changed. Change nothing yourself. Name each finding by file and line, the gravest first."

// File is a swarm file of what was found.
func (f Found) File() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# The agents of %s. swarmdeck up applies it; applied again, it changes nothing.", f.Project)
	line("projects:")
	line("  - name: %s", quoted(f.Project))
	line("")
	line("    # What must pass before work is merged, each in a cell, on the result.")
	list(line, "    ", "checks", f.Checks, "make test")
	f.setup(line)
	if len(f.Egress) > 0 {
		line("")
		line("    # Hosts that its agents reach unasked. A preset stands for several: swarmdeck egress allow --help names all.")
		line("    # egress: [%s]", strings.Join(f.Egress, ", "))
	}
	line("")
	line("    # What agents are made with: swarmdeck agent create fix --project %s --from coder --times 4 --task '…'", core.Quote(f.Project))
	if len(f.Agents) == 0 {
		line("    # No agent was found on PATH: put in what runs one, and take the # away.")
		line("    # roles:")
		for _, l := range role("coder", Agent{Runtime: "acp", Command: []string{"claude-agent-acp"}}, "", "worker") {
			line("    #   %s", l)
		}
		return []byte(b.String())
	}
	line("    roles:")
	first := f.Agents[0]
	roles := role("coder", first, "", "worker")
	if first.Runtime == "acp" {
		roles = append(roles, role("reviewer", first, reviewing, "reader")...)
	}
	for _, other := range f.Agents[1:] {
		roles = append(roles, role(other.Program, other, "", "worker")...)
	}
	for _, l := range roles {
		line("      %s", l)
	}
	line("")
	line("    # Keys are secrets: swarmdeck secret set KEY, and agent create --env NAME=@KEY.")
	return []byte(b.String())
}

// setup writes what a new tree begins with. Lines that need the network are a comment:
// a cell asks before it lets anybody out.
func (f Found) setup(line func(string, ...any)) {
	var near, far []string
	for _, text := range f.Setup {
		if text == copyEnv {
			near = append(near, text)
		} else {
			far = append(far, text)
		}
	}
	if len(near)+len(far) == 0 {
		return
	}
	line("")
	line("    # What runs once in the tree of a new agent, in a cell, before its first task.")
	if len(near) == 0 {
		line("    # tree:")
		line("    #   setup: # they need the network, which a cell has where egress lets it out")
	} else {
		line("    tree:")
		line("      setup:")
	}
	for _, text := range near {
		line("        - %s", quoted(text))
	}
	for _, text := range far {
		if len(near) == 0 {
			line("    #     - %s", quoted(text))
		} else {
			line("        # - %s # needs the network", quoted(text))
		}
	}
}

// list writes a list of texts; an empty one as a comment with what it could hold.
func list(line func(string, ...any), indent, name string, all []string, example string) {
	if len(all) == 0 {
		line("%s# %s: [%s]", indent, name, quoted(example))
		return
	}
	line("%s%s:", indent, name)
	for _, text := range all {
		line("%s  - %s", indent, quoted(text))
	}
}

// role is an item of a list of roles.
func role(name string, a Agent, prompt, profile string) []string {
	words := core.Map(a.Command, quoted)
	all := []string{"- name: " + quoted(name), "  runtime: " + a.Runtime, "  command: [" + strings.Join(words, ", ") + "]", "  profile: " + profile}
	if len(a.Options) > 0 {
		all = append(all, "  options: "+string(a.Options))
	}
	if prompt != "" {
		all = append(all, "  prompt: "+quoted(prompt))
	}
	return all
}
