package trace

import (
	"cmp"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// modelAsk is what a runtime saw of a request to a model, for the record.
func modelAsk(e fleet.Event) dag.ModelAsk {
	c := e.Model
	if c == nil {
		return dag.ModelAsk{}
	}
	return dag.ModelAsk{Model: c.Name, Params: c.Params, Tools: c.Tools, Messages: c.Messages}
}

func modelAnswer(e fleet.Event) dag.ModelAnswer {
	a := dag.ModelAnswer{Status: dag.CallStatus(e.Status)}
	if a.Status != dag.CallOK && a.Status != dag.CallInterrupted {
		a.Status = dag.CallError
	}
	c := e.Model
	if c == nil {
		return a
	}
	a.FinishReason, a.Usage = c.Finish, c.Tokens
	if a.Status != dag.CallOK {
		a.Error = &dag.Fault{Code: cmp.Or(c.Fault, string(a.Status)), Message: e.Error}
	}
	if c.Gone {
		a.Reason = dag.ReasonCanceled
	}
	for _, m := range c.Messages {
		a.Content = append(a.Content, m.Content...)
	}
	return a
}
