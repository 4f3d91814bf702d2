package pane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/screen"
)

// triedMost is how many of the rules that did not match are named.
const triedMost = 12

// Why writes out on what grounds a policy decided: which rule, of which
// version, its condition and the values that it read.
func Why(g *judge.Grounds, out *Paras) {
	for _, l := range WhyLines(g) {
		out.Exact(l.Lead, l.Text, l.Role)
	}
}

// WhyLines are the same as lines, each with its label as Lead. They hold text
// from outside.
func WhyLines(g *judge.Grounds) (all []Row) {
	add := func(label, text string, role screen.Role) {
		if text != "" {
			all = append(all, Row{Lead: label, Text: text, Role: role})
		}
	}
	rule := g.RuleID
	switch {
	case g.Program && rule == "":
		rule = "what the program said"
	case rule == "":
		rule = "no rule matched, so a person is asked"
	}
	add("decided by", rule+": "+g.Decision+" "+g.ReasonCode, screen.Text)
	version := g.PolicyVersion[:min(len(g.PolicyVersion), 12)]
	switch {
	case g.PolicyName == "":
		version += ", which is not kept"
	case g.PolicyID == "":
		version += " of the embedded policy"
	default:
		version += " of " + g.PolicyName + " (" + g.PolicyID + ")"
	}
	if g.Rules {
		version += ", which rules now"
	} else {
		version += ", which no longer rules"
	}
	add("version", version, screen.Text)
	if g.Program {
		add("program", "a program decides here: its reason is all it gives", screen.Text)
	}
	if g.Unsandboxed {
		add("", "it ran UNSANDBOXED: this system has no jail for it", screen.Danger)
	}
	if g.Floor {
		add("", "a floor of the embedded policy, which no other can lower", screen.Warn)
	}
	if g.Always {
		add("", "an \"always\" rule stood in for the person", screen.Warn)
	}
	add("condition", strings.TrimSpace(g.When), screen.Accent)
	for i, name := range slices.Sorted(maps.Keys(g.Values)) {
		label := "which read"
		if i > 0 {
			label = ""
		}
		value, err := core.Encode(g.Values[name])
		if err != nil {
			continue
		}
		add(label, name+" = "+string(value), screen.Text)
	}
	if n := len(g.Tried); n > 0 {
		text := strings.Join(g.Tried[max(0, n-triedMost):], ", ")
		if n > triedMost {
			text = fmt.Sprintf("%d others, and %s", n-triedMost, text)
		}
		add("not matched", text, screen.Dim)
	}
	add("unknown", g.Gone, screen.Warn)
	return all
}
