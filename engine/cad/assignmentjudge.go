package cad

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// judge decides whether an assignment whose operations went well is completed
// (seed 5: it can't be unless its success criteria are met).
func (r *run) judge(out *outcome) error {
	f, err := r.facts(out)
	if err != nil {
		return err
	}
	v, err := f.evaluate(r.in.Check)
	if err != nil {
		return err
	}
	out.Measures = v.measures
	if v.holds {
		return nil
	}
	return &stepError{FailedResult: FailedResult{
		Code: CheckFailed, Message: v.why, Field: "check", Measures: v.measures, Done: r.count,
		Suggestion: r.in.SuccessCriteria,
	}}
}

// factsWait bounds how long the facts are read.
const factsWait = 10 * time.Second

// facts is what the assignment came to.
func (r *run) facts(out *outcome) (*facts, error) {
	ctx, cancel := context.WithTimeout(r.ctx, factsWait)
	defer cancel()
	all, err := r.c.AllEntities(ctx, r.by.Tenant, r.place)
	if err != nil {
		return nil, fmt.Errorf("read workspace %s: %w", r.place, err)
	}
	open, err := r.c.Conflicts(ctx, r.by.Tenant, r.place)
	if err != nil {
		return nil, fmt.Errorf("read the conflicts of workspace %s: %w", r.place, err)
	}
	f := &facts{conflicts: len(open), interferences: r.pairs, files: r.files, results: map[string]any{}}
	if f.files == nil {
		f.files = []string{}
	}
	for i := range all {
		f.add(&all[i])
	}
	for id, answer := range out.Operations {
		var v any
		if err := json.Unmarshal(answer, &v); err != nil {
			return nil, fmt.Errorf("read the answer of operation %s: %w", id, err)
		}
		f.results[id] = v
	}
	return f, nil
}

// add takes one entity in.
func (f *facts) add(e *model.Entity) {
	properties := map[string]any{}
	if len(e.Properties) > 0 && json.Unmarshal(e.Properties, &properties) != nil {
		properties = map[string]any{}
	}
	f.entities = append(f.entities, map[string]any{"entity_id": e.ID, "entity_type": string(e.Type), "properties": properties})
	if e.Type != model.Solid {
		return
	}
	solid := map[string]any{}
	for name, v := range properties {
		solid[name] = v
	}
	solid["entity_id"] = e.ID
	if volume, ok := properties["volume"].(float64); ok {
		f.volume += volume
	}
	f.solids = append(f.solids, solid)
}

// pairsIn is how many pairs overlap, as measure.interference answers; nil when
// it does not say.
func pairsIn(answer core.Raw) *int {
	var a struct {
		Count *int `json:"interference_count"`
	}
	if core.DecodeStored(answer, &a) != nil {
		return nil
	}
	return a.Count
}
