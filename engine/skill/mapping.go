package skill

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// ownParams is the root of references to the composite's own parameters.
const ownParams = "params"

// checkSteps reports every mistake in the references of a composite's steps:
// each may look at the skill's own parameters, as far as parameters (its
// parameters_schema) declares any, and at the results of earlier steps.
func checkSteps(steps []Step, parameters core.Raw) []error {
	own := declared(parameters)
	var errs []error
	var earlier []string
	for i, s := range steps {
		field := fmt.Sprintf("runner.steps[%d]", i)
		switch name, rest := word(s.ID); {
		case name == "" || rest != "" || len(s.ID) > 50 || name == ownParams:
			errs = append(errs, core.Invalid(field+".id", s.ID, `1-50 letters, digits, - and _, and not "params"`))
		case slices.Contains(earlier, s.ID):
			errs = append(errs, core.Invalid(field+".id", s.ID, "a different id for each step"))
		}
		if len(s.Params) > 0 {
			if err := core.CheckObject(field+".params", s.Params, core.MaxInput); err != nil {
				errs = append(errs, err)
				earlier = append(earlier, s.ID)
				continue
			}
		}
		for _, u := range usesIn(s.Params, field+".params") {
			if err := u.checkStep(s.ID, earlier, steps, own); err != nil {
				errs = append(errs, err)
			}
		}
		earlier = append(earlier, s.ID)
	}
	return errs
}

// checkPrompt reports every reference of a prompt that names no parameter.
func checkPrompt(prompt string, parameters core.Raw) []error {
	own := declared(parameters)
	pieces, err := parseText(prompt)
	if err != nil {
		return []error{inField("runner.prompt", err)}
	}
	var errs []error
	for _, p := range pieces {
		if p.ref != nil && len(own) > 0 && !slices.Contains(own, p.ref.root) {
			errs = append(errs, inField("runner.prompt", core.Errorf(core.InvalidInput,
				"%s: the skill has no parameter %s; it has %s", p.ref.text, p.ref.root, strings.Join(someNames(own), ", "))))
		}
	}
	return errs
}

// use is a reference, or a text that is none, at its place in a document.
type use struct {
	field string
	ref   *reference
	err   error
}

// usesIn lists the references of a step's parameters.
func usesIn(params core.Raw, field string) []use {
	var list []use
	if len(params) == 0 {
		return nil
	}
	err := eachToken(params, func(dec *jsontext.Decoder, name bool, text string) error {
		at := field + dotted(dec.StackPointer())
		pieces, err := parseText(text)
		if name {
			if err != nil || slices.ContainsFunc(pieces, func(p piece) bool { return p.ref != nil }) {
				list = append(list, use{field: at, err: core.Errorf(core.InvalidInput, "%q: references stand in values, not in names", shorten(text, 60))})
			}
			return nil
		}
		if err != nil {
			list = append(list, use{field: at, err: err})
		}
		for _, p := range pieces {
			if p.ref != nil {
				list = append(list, use{field: at, ref: p.ref})
			}
		}
		return nil
	})
	if err != nil {
		list = append(list, use{field: field, err: core.Errorf(core.InvalidInput, "not valid JSON: %v", err)})
	}
	return list
}

func (u use) checkStep(step string, earlier []string, steps []Step, own []string) error {
	fail := func(format string, args ...any) error {
		return inField(u.field, core.Errorf(core.InvalidInput, "step %s: %s", step, fmt.Sprintf(format, args...)))
	}
	switch {
	case u.err != nil:
		return fail("%v", u.err)
	case u.ref.root == ownParams && len(u.ref.path) > 0 && u.ref.path[0].key == "":
		return fail("%s: params has fields, not items", u.ref.text)
	case u.ref.root == ownParams && len(u.ref.path) > 0 && len(own) > 0 && !slices.Contains(own, u.ref.path[0].key):
		return fail("%s: the skill has no parameter %s; it has %s", u.ref.text, u.ref.path[0].key, strings.Join(someNames(own), ", "))
	case u.ref.root == ownParams || slices.Contains(earlier, u.ref.root):
		return nil
	case u.ref.root == step:
		return fail("%s: a step can't use its own result", u.ref.text)
	case slices.ContainsFunc(steps, func(s Step) bool { return s.ID == u.ref.root }):
		return fail("%s: step %s runs later; only results of earlier steps are there", u.ref.text, u.ref.root)
	case len(earlier) == 0:
		return fail("%s: no step comes before this one; ${params.…} names the skill's own parameters", u.ref.text)
	}
	return fail("%s: there is no step %s; earlier ones are %s", u.ref.text, u.ref.root, strings.Join(someNames(earlier), ", "))
}

// fillParams resolves the references in the texts of a step's parameters.
// Scope holds the JSON value of each earlier step's id and of "params". A
// text that is exactly one reference becomes the value, with its type; in any
// other it is spliced in: a text as it is, any other value as JSON.
func fillParams(params core.Raw, scope map[string]core.Raw) (core.Raw, error) {
	if len(params) == 0 {
		return core.Raw(`{}`), nil
	}
	out := bounded{left: core.MaxInput}
	enc := jsontext.NewEncoder(&out)
	dec := jsontext.NewDecoder(bytes.NewBuffer(params))
	for {
		name := atName(dec)
		tok, err := dec.ReadToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, core.Errorf(core.InvalidInput, "params: not valid JSON: %v", err)
		}
		if tok.Kind() != '"' || name || !strings.Contains(tok.String(), "${") {
			err = enc.WriteToken(tok)
		} else {
			var value core.Raw
			if value, err = fillText(tok.String(), scope); err != nil {
				return nil, inField("params"+dotted(dec.StackPointer()), err)
			}
			err = enc.WriteValue(value)
		}
		if err != nil {
			return nil, tooLarge(err)
		}
	}
	filled := core.Raw(bytes.TrimSpace(out.data))
	return filled, core.CheckObject("params", filled, core.MaxInput)
}

// fillText is the JSON value that a text with references stands for.
func fillText(text string, scope map[string]core.Raw) (core.Raw, error) {
	pieces, err := parseText(text)
	if err != nil {
		return nil, err
	}
	if len(pieces) == 1 && pieces[0].ref != nil {
		return pieces[0].ref.find(scope)
	}
	s, err := splice(pieces, scope)
	if err != nil {
		return nil, err
	}
	return core.Encode(s)
}

// fillPrompt is a prompt with its ${param} filled in.
func fillPrompt(prompt string, params core.Raw) (string, error) {
	pieces, err := parseText(prompt)
	if err != nil {
		return "", inField("runner.prompt", err)
	}
	scope := map[string]core.Raw{}
	for _, p := range pieces {
		if p.ref == nil {
			continue
		}
		if value, _ := memberOf(params, p.ref.root); value != nil {
			scope[p.ref.root] = value
		}
	}
	s, err := splice(pieces, scope)
	if err != nil {
		return "", inField("runner.prompt", err)
	}
	return s, nil
}

func splice(pieces []piece, scope map[string]core.Raw) (string, error) {
	out := bounded{left: core.MaxInput}
	for _, p := range pieces {
		text := p.literal
		if p.ref != nil {
			value, err := p.ref.find(scope)
			if err != nil {
				return "", err
			}
			if text, err = asText(value); err != nil {
				return "", err
			}
		}
		if _, err := out.Write([]byte(text)); err != nil {
			return "", tooLarge(err)
		}
	}
	return string(out.data), nil
}
