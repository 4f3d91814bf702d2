package skill

import (
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// maxBound bounds the files that one run's question lists.
const maxBound = 256

// bind finds the files that a spec names, as they are now.
func (s *Skills) bind(tenant string, spec Spec) []judge.File {
	if b, ok := s.opt.Runners[spec.Kind].(Binder); ok {
		return b.Bind(tenant, spec)
	}
	return nil
}

// Bind finds the files that the skills of an invocation's plan name.
func (i invoker) Bind(tenant string, action judge.Action) []judge.File {
	var in invocation
	var plan []planned
	if core.DecodeStored(action.Args, &in) != nil || core.DecodeStored(in.Plan, &plan) != nil {
		return nil
	}
	var out []judge.File
	for _, p := range plan {
		for _, f := range i.s.bind(tenant, p.Runner) {
			if slices.Contains(out, f) {
				continue
			}
			if len(out) == maxBound {
				return append(out, judge.File{Unbound: "more files than can be bound"})
			}
			out = append(out, f)
		}
	}
	return out
}

// among reports whether all files were judged as they are.
func among(files, judged []judge.File) bool {
	return !slices.ContainsFunc(files, func(f judge.File) bool { return !slices.Contains(judged, f) })
}
