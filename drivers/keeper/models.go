package keeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// Overhear passes what an agent and its model say to each other on to the turn
// that now gives. What comes when there is none, or when that is over, is told
// late, as a line of the log and as usage.
func Overhear(now func() *Turn, late func(fleet.Event)) func(asked fleet.Event) (answered func(fleet.Event)) {
	return func(asked fleet.Event) func(fleet.Event) {
		t := now()
		if t != nil && answersCalls(asked.Model) {
			t.settle()
		}
		if t != nil && !t.Speak(func() { t.Pass(asked) }) {
			t = nil
		}
		return func(e fleet.Event) {
			spent := usage(e)
			if t != nil && t.Speak(func() { t.Pass(e); t.Pass(spent) }) {
				return
			}
			text := "a model was asked outside of a task: " + e.Status
			if t != nil {
				text = "a model answered after the end of the task: " + e.Status
			}
			late(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf("%s, %d tokens", text, spent.Tokens)})
			if spent.Tokens > 0 {
				late(spent)
			}
		}
	}
}

// resultPatience is how long a request to a model waits for the end of the calls whose
// results it holds: an agent tells of a call's end on one way and gives the result to its
// model on another, often before the first has arrived. The record would have a model
// know what has not happened yet.
const resultPatience = 500 * time.Millisecond

// settle waits until no call is open. In vain it does so once in a turn.
func (t *Turn) settle() {
	if t.Prompt.Settle == nil || t.unheard.Load() {
		return
	}
	ctx, stop := context.WithTimeout(t.Asking, resultPatience)
	defer stop()
	_ = t.Prompt.Settle(ctx)
	t.unheard.Store(ctx.Err() != nil)
}

// answersCalls reports whether the newest message holds results of calls.
func answersCalls(c *fleet.ModelCall) bool {
	if c == nil || len(c.Messages) == 0 {
		return false
	}
	m := &c.Messages[len(c.Messages)-1]
	return m.Role == dag.RoleTool || slices.ContainsFunc(m.Content, func(p dag.ContentPart) bool { return p.Type == "tool_result" })
}

// usage is what an answer took. That it names a model tells it from what the
// agent itself says it spent.
func usage(e fleet.Event) fleet.Event {
	out := fleet.Event{Type: "usage", Model: e.Model}
	if e.Model != nil && e.Model.Tokens != nil {
		t := e.Model.Tokens
		out.Tokens, out.Split = t.TotalTokens, fleet.Split{Input: t.PromptTokens, Output: t.CompletionTokens, Cached: t.CachedTokens}
	}
	return out
}

// spending keeps an agent's own word of what it spent apart from what was seen
// to pass to and from its model: both tell of the same tokens.
type spending struct {
	own, seen, told                int64
	ownSplit, seenSplit, toldSplit fleet.Split
}

// more is what an event adds to what is counted, which is the larger of the
// two. A claim that can't be is left for others to refuse.
func (s *spending) more(e *fleet.Event) (counts bool) {
	if e.Tokens < 0 {
		return true
	}
	if e.Model != nil {
		s.seen += e.Tokens
		s.seenSplit = s.seenSplit.Plus(e.Split)
	} else {
		s.own += e.Tokens
		s.ownSplit = s.ownSplit.Plus(e.Split)
	}
	sum, split := max(s.own, s.seen), s.ownSplit
	if s.seenSplit.Input+s.seenSplit.Output > split.Input+split.Output {
		split = s.seenSplit
	}
	e.Split = Beyond(split, s.toldSplit)
	s.toldSplit = s.toldSplit.Plus(e.Split)
	e.Tokens, s.told, e.Model = sum-s.told, sum, nil
	return e.Tokens > 0 || e.CostUSD != 0 || e.Split != (fleet.Split{}) || e.Context.Used > 0
}

// Beyond is what there is of some tokens beyond others, and nothing less.
func Beyond(s, o fleet.Split) fleet.Split {
	return fleet.Split{Input: max(0, s.Input-o.Input), Output: max(0, s.Output-o.Output), Cached: max(0, s.Cached-o.Cached)}
}

// Seen is, inside Speak, how many tokens were seen to pass.
func (t *Turn) Seen() int64 { return t.spent.seen }
