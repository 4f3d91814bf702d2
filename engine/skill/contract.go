package skill

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"swarmdeck/engine/core"
)

// contract is what a skill takes and gives: its schemas, each made ready on
// its first use.
type contract struct {
	params  func() (*checker, error)
	partial func() (*checker, error)
	returns func() (*checker, error) // of nothing: nil, nil
}

// checker is a schema ready to check with, and its fan.
type checker struct {
	schema *jsonschema.Schema
	fan    float64
}

func newContract(s *Skill) *contract {
	params, returns := s.ParametersSchema, s.ReturnsSchema
	ready := func(raw core.Raw, change func(any)) func() (*checker, error) {
		return sync.OnceValues(func() (*checker, error) {
			if len(raw) == 0 {
				return nil, nil
			}
			doc, err := plainValue(raw)
			if err != nil {
				return nil, err
			}
			if change != nil {
				change(doc)
			}
			schema, err := compile(doc)
			if err != nil {
				return nil, err
			}
			return &checker{schema, fan(schema)}, nil
		})
	}
	return &contract{ready(params, nil), ready(params, onlyTypes), ready(returns, nil)}
}

// onlyTypes leaves of a schema what can be said of a part of the parameters.
func onlyTypes(doc any) {
	top, _ := doc.(map[string]any)
	kept := []string{
		"$schema", "$id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "type",
		"properties", "patternProperties", "additionalProperties", "propertyNames", "maxProperties",
	}
	for name := range top {
		if !slices.Contains(kept, name) {
			delete(top, name)
		}
	}
}

// checkParams checks parameters, a JSON object, against the skill's
// parameters_schema and returns them with the defaults filled in. The error
// names every mistake by its field, "params.speed".
func (s *Skill) checkParams(raw core.Raw) (core.Raw, error) {
	by, err := s.ready().params()
	if err != nil {
		return nil, fmt.Errorf("skill %s: parameters_schema: %w", s.Ref(), err)
	}
	return check("params", by, raw, true)
}

// partialParams checks some of the parameters, before the rest is known: what
// is there has to fit, and none has to be there.
func (s *Skill) partialParams(raw core.Raw) error {
	by, err := s.ready().partial()
	if err != nil {
		return fmt.Errorf("skill %s: parameters_schema: %w", s.Ref(), err)
	}
	_, err = check("params", by, raw, true) // a member with a default may be left out
	return err
}

// checkResult checks a result, a JSON object, against the skill's
// returns_schema if it has one. The error names every mistake by its field,
// "result.objects[0]".
func (s *Skill) checkResult(raw core.Raw) error {
	by, err := s.ready().returns()
	if err != nil {
		return fmt.Errorf("skill %s: returns_schema: %w", s.Ref(), err)
	}
	_, err = check("result", by, raw, false)
	return err
}

// CheckParams is what an invocation would say about parameters: nil when they
// may be given. They come back with the defaults filled in.
func (s *Skill) CheckParams(raw core.Raw) (core.Raw, error) { return s.checkParams(raw) }

// ready is the skill's contract. One that came from no registry makes it anew
// for each use.
func (s *Skill) ready() *contract {
	if s.contract != nil {
		return s.contract
	}
	return newContract(s)
}

func check(root string, by *checker, raw core.Raw, fill bool) (core.Raw, error) {
	if err := core.CheckObject(root, raw, core.MaxInput); err != nil {
		return nil, err
	}
	if by == nil {
		return raw, nil
	}
	v, err := plainValue(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	if by.fan > 1 && checks(v, by.fan, 0) > maxChecks {
		return nil, core.Errorf(core.InvalidInput, "%s: nested too deeply for what its schema asks to be checked", root).With("field", root)
	}
	added := fill && fillDefaults(by.schema, v, 0)
	if err := mistakes(root, validate(by.schema, v)); err != nil || !added {
		return raw, err
	}
	return appendPlain(nil, v)
}

// validate lists what a schema finds wrong with a value.
func validate(schema *jsonschema.Schema, v any) (flaws []flaw) {
	defer func() { // the validator is not ours: its panics are mistakes of the schema
		if p := recover(); p != nil {
			flaws = []flaw{{message: "can't be checked against the schema"}}
		}
	}()
	err := schema.Validate(v)
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return flawsOf(invalid)
	}
	return []flaw{{message: err.Error()}}
}

// maxContracts bounds how many are kept beyond the skills that are loaded.
const maxContracts = 4096

// contracts keeps one contract for all skills with the same schemas.
type contracts struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*contract
}

// adopt gives a skill its contract. Call it before others can see the skill.
func (c *contracts) adopt(s *Skill) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d ", len(s.ParametersSchema))
	sum.Write(s.ParametersSchema)
	sum.Write(s.ReturnsSchema)
	key := [sha256.Size]byte(sum.Sum(nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.contract = c.known[key]; s.contract != nil {
		return
	}
	if c.known == nil || len(c.known) >= maxContracts {
		c.known = map[[sha256.Size]byte]*contract{} // those in use stay with their skills
	}
	s.contract = newContract(s)
	c.known[key] = s.contract
}
