package skill

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"swarmdeck/engine/core"
	"swarmdeck/engine/schema"
)

// contract is what a skill takes and gives: its schemas, each made ready on
// its first use.
type contract struct {
	params  func() (*schema.Checker, error)
	partial func() (*schema.Checker, error)
	returns func() (*schema.Checker, error) // of nothing: nil, nil
}

func newContract(s *Skill) *contract {
	params, returns := s.ParametersSchema, s.ReturnsSchema
	ready := func(raw core.Raw, change func(any)) func() (*schema.Checker, error) {
		return sync.OnceValues(func() (*schema.Checker, error) {
			if len(raw) == 0 {
				return nil, nil
			}
			return schema.New(raw, change)
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
	maps.DeleteFunc(top, func(name string, _ any) bool { return !slices.Contains(kept, name) })
}

// CheckParams checks parameters, a JSON object, against the skill's
// parameters_schema and returns them with the defaults filled in. The error
// names every mistake by its field, "params.speed".
func (s *Skill) CheckParams(raw core.Raw) (core.Raw, error) {
	return s.check("params", raw, "parameters_schema", s.ready().params, true)
}

// partialParams checks some of the parameters, before the rest is known: what
// is there has to fit, and none has to be there. A member with a default may be
// left out.
func (s *Skill) partialParams(raw core.Raw) error {
	_, err := s.check("params", raw, "parameters_schema", s.ready().partial, true)
	return err
}

// checkResult checks a result, a JSON object, against the skill's
// returns_schema if it has one. The error names every mistake by its field,
// "result.objects[0]".
func (s *Skill) checkResult(raw core.Raw) error {
	_, err := s.check("result", raw, "returns_schema", s.ready().returns, false)
	return err
}

// ready is the skill's contract. One that came from no registry makes it anew
// for each use.
func (s *Skill) ready() *contract {
	if s.contract != nil {
		return s.contract
	}
	return newContract(s)
}

func (s *Skill) check(root string, raw core.Raw, field string, ready func() (*schema.Checker, error), fill bool) (core.Raw, error) {
	by, err := ready()
	if err != nil {
		return nil, fmt.Errorf("skill %s: %s: %w", s.Ref(), field, err)
	}
	return by.Check(root, raw, fill)
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
