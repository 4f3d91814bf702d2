package command

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/command/swarmfile"
)

func (t *tree) policyPropose() *cobra.Command {
	var in judge.Proposal
	var tests, interpreter string
	var atGates []string
	return t.command(spec{
		use: "propose FILE", short: "Propose a policy; it rules nothing yet", effect: Writes, args: []string{sourceText},
		long: "Propose a policy; it rules nothing yet. A .yaml, .yml or .json file is a table of rules, whose lists (commands, tools,\n" +
			"topics …) are the embedded ones where it has none. Any other file is a program: it reads one JSON document on its\n" +
			"stdin and prints {decision, reason_code, confidence, rationale, rule_id?}. Agents may propose, never activate.",
		example: "policy propose policy.yaml --tests policy.jsonl",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&tests, "tests", "", "its cases: a `FILE` of JSON lines {name, input, expect}")
			f.StringVar(&in.Name, "name", "", "what to call it (default its own name, or the file's)")
			f.StringVar(&interpreter, "interpreter", "", "`COMMAND` that runs a program (default its first line, #!)")
			f.BoolVar(&in.Serve, "serve", false, "the program stays: it answers a line for each line")
			f.StringSliceVar(&atGates, "gate", nil, "`GATE` that the program decides; may be repeated (default all)")
			source(f, "tests", sourceText)
		},
		run: func(c *call, args []string) (err error) {
			if in.Source, err = c.file("file", args[0]); err != nil {
				return err
			}
			if in.Cases = nil; tests != "" {
				if in.Cases, err = c.file("tests", tests); err != nil {
					return err
				}
			}
			ask, err := proposalOf(in, args[0], interpreter, atGates)
			if err != nil {
				return err
			}
			made, err := c.eng.Judge.Propose(c.ctx, c.by, ask)
			if err != nil {
				return err
			}
			return record(c, made, policyColumns(c))
		},
	})
}

// proposalOf says by a file's name what kind of policy it is.
func proposalOf(p judge.Proposal, path, interpreter string, atGates []string) (judge.Proposal, error) {
	p.Kind = judge.KindProgram
	if slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))) {
		p.Kind = judge.KindRules
	} else if p.Name == "" && path != "-" {
		p.Name = filepath.Base(path)
	}
	words, err := Split(interpreter)
	if err != nil {
		return p, err
	}
	p.Interpreter, p.Gates = words, nil
	for _, g := range atGates {
		p.Gates = append(p.Gates, judge.Gate(g))
	}
	return p, nil
}

func (t *tree) policyTerms() *cobra.Command {
	var two, jailed string
	words := []string{"on", "off"}
	return t.command(spec{
		use: "terms", short: "What an activation needs", effect: Reads,
		long: "Show or change what an activation needs: two persons, and a jail for programs. Where two persons are needed,\n" +
			"it takes two to ask for less as well. Changing it needs the role approver.",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&two, "two-persons", "", "`on|off`: two operators must activate")
			f.StringVar(&jailed, "jailed", "", "`on|off`: a program that can't be jailed here is refused")
		},
		check: func(c *call, _ []string) error {
			for name, v := range map[string]string{"two-persons": two, "jailed": jailed} {
				if v != "" && !slices.Contains(words, v) {
					return core.Invalid(name, v, "on, off")
				}
			}
			if two == "" && jailed == "" {
				return nil
			}
			return c.change(Approver)
		},
		run: func(c *call, _ []string) error {
			now, err := c.eng.Judge.Terms(c.ctx, c.by.Tenant)
			if err != nil {
				return err
			}
			if two != "" || jailed != "" {
				if two != "" {
					now.TwoPersons = two == "on"
				}
				if jailed != "" {
					now.Jailed = jailed == "on"
				}
				if now, err = c.eng.Judge.SetTerms(c.ctx, c.by, now); err != nil {
					return err
				}
			}
			return c.show(now)
		},
	})
}

func policyColumns(c *call) []column[judge.Policy] {
	type P = judge.Policy
	return []column[P]{
		{title: "POLICY", text: func(p P) string { return p.PolicyID }},
		{title: "STATUS", text: func(p P) string { return string(p.Status) }},
		{title: "KIND", text: func(p P) string { return string(p.Kind) }},
		{title: "NAME", most: 24, text: func(p P) string { return p.Name }},
		{title: "TESTS", text: func(p P) string {
			if p.Cases == 0 {
				return "no cases"
			}
			if p.TestsSummary == nil {
				return fmt.Sprintf("%d not run", p.Cases)
			}
			return fmt.Sprintf("%d of %d pass", p.TestsSummary.Passed, p.TestsSummary.Total)
		}},
		{title: "JAIL", text: func(p P) string {
			switch {
			case p.Kind != judge.KindProgram:
				return "-"
			case p.Unsandboxed:
				return "unsandboxed"
			}
			return "jailed"
		}},
		{title: "BY", text: func(p P) string { return p.ProposedBy }},
		{title: "FIRST", wide: true, text: func(p P) string { return p.FirstBy }},
		{title: "AGE", right: true, text: func(p P) string { return c.age(p.CreatedAt) }},
		{title: "DIGEST", wide: true, most: 12, text: func(p P) string { return p.SourceDigest }},
		{title: "VERSION", wide: true, most: 12, text: func(p P) string { return p.Version }},
	}
}

// policy lets the file's policy rule.
func (a *applier) policy(p *swarmfile.Policy) error {
	in, err := a.written(p)
	if err != nil {
		return err
	}
	made, action, err := a.eng.Judge.Apply(a.ctx, a.by, in)
	if err != nil {
		return err
	}
	a.did(action, "policy", made.Name, made.PolicyID)
	return nil
}

// written is the policy that a swarm file names.
func (a *applier) written(p *swarmfile.Policy) (in judge.Proposal, err error) {
	in.Serve = p.Serve
	if in.Source, err = a.readFile("file", p.File); err != nil {
		return in, err
	}
	if in.Cases, err = a.readFile("tests", p.Tests); err != nil {
		return in, err
	}
	return proposalOf(in, p.File, Join(p.Interpreter), p.Gates)
}

// checkPolicy finds what letting the file's policy rule would refuse. A
// mistake in the policy's own files is told with its place there.
func (a *applier) checkPolicy(file *swarmfile.File, p *problems) error {
	want := file.Policy
	if want == nil {
		return nil
	}
	at := place{"policy", want.Line, want.Lines}
	in, err := a.written(want)
	if err != nil {
		if !p.add(at, err) {
			return err
		}
		return nil
	}
	err = a.eng.Judge.CheckApply(a.ctx, a.by, in)
	if err == nil {
		return nil
	}
	e := core.AsError(err)
	part, _ := e.Details["in"].(string)
	line, _ := e.Details["line"].(int)
	path := map[string]string{"source": want.File, "tests": want.Tests}[part]
	if path != "" && line > 0 {
		field, _ := e.Details["field"].(string)
		message := strings.Replace(e.Message, fmt.Sprintf(" (line %d)", line), "", 1)
		for _, said := range []string{"policy: ", "tests: ", fmt.Sprintf("line %d: ", line), field + ": "} {
			message = strings.TrimPrefix(message, said)
		}
		p.found = append(p.found, document.Problem{File: path, Line: line, Field: cmp.Or(field, "policy"), Message: message})
		return nil
	}
	if e.Details["field"] == nil || e.Details["field"] == "source" {
		e = e.With("field", "file")
	}
	if !p.add(at, e) {
		return err
	}
	return nil
}

func (a *applier) readFile(field, path string) ([]byte, error) {
	f, err := a.open(path)
	if err != nil {
		return nil, fileError(field, path, err)
	}
	defer f.Close()
	return readBounded(field, path, f)
}
