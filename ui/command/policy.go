package command

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/ui/command/swarmfile"
)

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
	return op.ProposalOf(in, p.File, p.Interpreter, p.Gates), nil
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
