package resource

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// what are resources of each sort.
func what(caps ...dag.Capability) dag.Resource {
	return dag.Resource{ID: "r-1", Kind: dag.ResourceFile, Name: "thing", Capabilities: caps}
}

func TestAPlanHoldsToTheSeedsRules(t *testing.T) {
	full := what(dag.CanSnapshot, dag.CanRestore, dag.CanFork, dag.CanShare)
	alone := what(dag.CanSnapshot, dag.CanRestore, dag.CanFork)
	running := what(dag.CanSnapshot)
	running.Imperative = true
	handle := what()
	handle.Imperative = true
	unrestorable := what(dag.CanSnapshot, dag.CanShare)
	for name, c := range map[string]struct {
		res    dag.Resource
		choice Choice
		word   string // of the refusal, "" for none
		keptBy string
		makes  bool
	}{
		"a copy":                            {full, Choice{Mode: dag.PlanSnapshot}, "", "", true},
		"shared":                            {full, Choice{Mode: dag.PlanKeep}, "", "", false},
		"kept by the fork":                  {full, Choice{dag.PlanKeep, "try"}, "", "try", false},
		"kept by nobody's branch":           {full, Choice{dag.PlanKeep, "else"}, "main, try", "", false},
		"kept_by without keep":              {full, Choice{dag.PlanSnapshot, "main"}, "kept_by", "", false},
		"no mode":                           {full, Choice{}, "keep, snapshot, discard", "", false},
		"what can't be shared has one":      {alone, Choice{Mode: dag.PlanKeep}, "", "main", false},
		"imperative is kept by one":         {running, Choice{Mode: dag.PlanKeep}, "", "main", false},
		"imperative is snapshotted":         {running, Choice{Mode: dag.PlanSnapshot}, "", "", false},
		"imperative without snapshot":       {handle, Choice{Mode: dag.PlanSnapshot}, "capability snapshot", "", false},
		"imperative is discarded":           {handle, Choice{Mode: dag.PlanDiscard}, "", "", false},
		"without restore it is kept by one": {unrestorable, Choice{Mode: dag.PlanKeep}, "", "main", false},
		"without restore none is made":      {unrestorable, Choice{Mode: dag.PlanSnapshot}, "", "", false},
	} {
		parts := []Part{{Resource: c.res, Hold: Hold{Mode: dag.ReadWrite}, managed: true}}
		parts[0].rules()
		err := apply(parts, map[string]Choice{"r-1": c.choice}, "main", "try")
		if c.word != "" {
			if core.AsError(errOr(err)).Code != core.InvalidInput || !strings.Contains(err.Error(), c.word) || !strings.Contains(err.Error(), "plan.r-1") {
				t.Errorf("%s: %v, want %q", name, err, c.word)
			}
			continue
		}
		if err != nil || parts[0].KeptBy != c.keptBy || parts[0].makes() != c.makes {
			t.Errorf("%s: kept by %q, makes %t: %v", name, parts[0].KeptBy, parts[0].makes(), err)
		}
	}
	expect.Says(t, apply(nil, map[string]Choice{"other": {Mode: dag.PlanKeep}}, "main", "try"), "it had none")
	far := []Part{{Resource: full}}
	far[0].rules()
	expect.Says(t, apply(far, map[string]Choice{"thing": {Mode: dag.PlanSnapshot}}, "main", "try"), "nothing here looks after it")
}

func errOr(err error) error {
	if err == nil {
		return core.Errorf(core.Internal, "no error")
	}
	return err
}
