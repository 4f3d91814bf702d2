package acp

import (
	"fmt"
	"math"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// cost is what a session has cost so far.
type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// spent is what a session was last known to have used, in sum.
type spent struct {
	tokens  int64
	cost    float64
	context int64 // of the turn under way: see spend
	foreign bool  // a cost in another currency was told of
}

// spend takes an update about usage. The context's size is the only figure
// that some agents give: each is taken for one request to the model over that
// context, unless the turn's end brings better ones.
func (s *session) spend(u update) {
	s.mu.Lock()
	if u.Used > 0 && u.Used < math.MaxInt32 {
		s.spent.context += u.Used
	}
	var more float64
	foreign := false
	if c := u.Cost; c != nil && !math.IsNaN(c.Amount) && !math.IsInf(c.Amount, 0) && c.Amount >= 0 {
		if c.Currency == "USD" || c.Currency == "" {
			more = max(0, c.Amount-s.spent.cost)
			s.spent.cost = max(s.spent.cost, c.Amount)
		} else {
			foreign = !s.spent.foreign
			s.spent.foreign = true
		}
	}
	s.mu.Unlock()
	if more > 0 {
		s.a.hear(fleet.Event{Type: "usage", CostUSD: more})
	}
	if foreign {
		s.a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "the agent tells its cost in " + core.ClipTo(u.Cost.Currency, 16) + ", which is not counted"})
	}
}

// stopped is the answer to a prompt.
type stopped struct {
	StopReason string `json:"stopReason"`
	Usage      *struct {
		Total  int64 `json:"totalTokens"`
		Input  int64 `json:"inputTokens"`
		Output int64 `json:"outputTokens"`
	} `json:"usage"`
	Meta struct {
		Quota core.Raw `json:"quota"`
	} `json:"_meta"`
}

// settleUsage counts the tokens of a turn: by the session's sum where the agent
// gives it, by the turn's own figures where it gives those, else by the
// contexts that it told of.
func (t *turn) settleUsage(end stopped) {
	s := t.s
	seen := false
	t.Speak(func() { seen = t.Seen() })
	s.mu.Lock()
	tokens, estimate := s.spent.context, s.spent.context > 0
	s.spent.context = 0
	var quota struct {
		Count struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"token_count"`
	}
	switch {
	case end.Usage != nil:
		estimate = false
		total := max(end.Usage.Total, end.Usage.Input+end.Usage.Output)
		if tokens = total - s.spent.tokens; tokens < 0 {
			tokens = total // it began to count anew
		}
		s.spent.tokens = total
	case len(end.Meta.Quota) > 0 && jsonrpc.Decode(end.Meta.Quota, &quota) == nil && quota.Count.Input+quota.Count.Output > 0:
		estimate = false
		tokens = quota.Count.Input + quota.Count.Output
	}
	s.mu.Unlock()
	if tokens <= 0 || estimate && seen {
		return
	}
	if estimate {
		t.emit(fleet.Event{Type: "log", Level: "DEBUG", Text: fmt.Sprintf("%d tokens, estimated from the contexts that the agent told of", tokens)})
	}
	t.emit(fleet.Event{Type: "usage", Tokens: tokens})
}
