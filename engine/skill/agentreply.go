package skill

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/task"
)

// reply is the result of a child that is over.
func (w *agentWork) reply(ctx context.Context, t task.Task) (core.Raw, error) {
	r, err := w.tasks.Result(ctx, t.TenantID, t.TaskID)
	if err != nil {
		return nil, fmt.Errorf("read the result of task %s: %w", t.TaskID, err)
	}
	if r.Status == task.Succeeded {
		return objectOf(r.Output), nil
	}
	f := &Failure{Code: "agent_failed", Message: fmt.Sprintf("agent %s: task %s ended %s", w.call.Skill.Runner.Agent, t.TaskID, r.Status)}
	if r.Error != nil {
		f.Code, f.Message, f.Retryable = r.Error.Code, f.Message+": "+r.Error.Message, r.Error.Retryable
	}
	if r.Status == task.Cancelled {
		f.Code = "agent_cancelled"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied = r.Status == task.Blocked
	return nil, f
}

// objectOf is an agent's output, or the one JSON object that its text is.
func objectOf(output core.Raw) core.Raw {
	if len(output) == 0 {
		return core.Raw(`{}`)
	}
	var whole string
	plain := output.Kind() == '{'
	_ = mapping.EachText(output, func(dec *jsontext.Decoder, name bool, text string) error {
		switch at := strings.TrimPrefix(mapping.Place(dec.StackPointer()), "."); {
		case name && !strings.Contains(" text stdout rc stop_reason ", " "+at+" "):
			plain = false // it says more than a text
		case !name && (at == "text" || at == "stdout"):
			whole = text
		}
		return nil
	})
	whole = unfenced(strings.TrimSpace(whole))
	if !plain || core.CheckObject("output", []byte(whole), MaxResult) != nil {
		return output
	}
	return core.Raw(whole)
}

// unfenced is what stands in a code fence that is the whole text, as models
// like to answer.
func unfenced(s string) string {
	rest, opened := strings.CutPrefix(s, "```")
	inner, closed := strings.CutSuffix(rest, "```")
	lang, body, lines := strings.Cut(inner, "\n")
	if !opened || !closed || !lines || strings.ContainsAny(lang, "{}") {
		return s
	}
	return strings.TrimSpace(body)
}
