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

// spent is what a session was last known to have used.
type spent struct {
	// Cost is the sum that the agent told of last, Tokens what was counted by its own
	// figures.
	Cost   float64 `json:"cost_usd,omitzero"`
	Tokens int64   `json:"tokens,omitzero"`
	// Sums says that its figures at the end of a turn are the session's: see read.
	Sums bool `json:"sums,omitzero"`

	context int64 // of the turn under way: see spend
	asked   int64 // of the turn under way: see requested
	foreign bool  // a cost in another currency was told of
}

// most is the largest number of tokens that one figure may tell of.
const most = 1 << 40

// reported is what an agent says that some work took. Whether the cached part is within
// the input differs; the total, where there is one, has all.
type reported struct {
	Total  int64 `json:"totalTokens"`
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
}

// tokens is their number; 0 for figures that can't be.
func (u *reported) tokens() int64 {
	if u == nil || min(u.Total, u.Input, u.Output) < 0 || max(u.Total, u.Input, u.Output) > most {
		return 0
	}
	return max(u.Total, u.Input+u.Output)
}

// spend takes an update about usage. The context's size is the only figure
// that some agents give: each is taken for one request to the model over that
// context, unless the turn's end brings better ones. The cost is a running sum; one
// that falls began anew.
func (s *session) spend(u update) {
	s.mu.Lock()
	if u.Used > 0 && u.Used < math.MaxInt32 {
		s.spent.context += u.Used
	}
	var more float64
	foreign := false
	if c := u.Cost; c != nil && !math.IsNaN(c.Amount) && !math.IsInf(c.Amount, 0) && c.Amount >= 0 {
		if c.Currency == "USD" || c.Currency == "" {
			if more = c.Amount - s.spent.Cost; more < 0 {
				more = c.Amount
			}
			s.spent.Cost = c.Amount
		} else {
			foreign = !s.spent.foreign
			s.spent.foreign = true
		}
	}
	s.mu.Unlock()
	if more > 0 {
		s.a.hear(fleet.Event{Type: "usage", CostUSD: more})
		s.keep()
	}
	if foreign {
		s.a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "the agent tells its cost in " + core.ClipTo(u.Cost.Currency, 16) + ", which is not counted"})
	}
}

// requested counts what one request to the model took, at once. Qwen-code tells so
// beside an empty piece of a message.
func (t *turn) requested(u *reported) {
	n := u.tokens()
	if n == 0 {
		return
	}
	t.s.mu.Lock()
	t.s.spent.asked += n
	t.s.spent.Tokens += n
	t.s.mu.Unlock()
	t.emit(fleet.Event{Type: "usage", Tokens: n})
}

// stopped is the answer to a prompt.
type stopped struct {
	StopReason string    `json:"stopReason"`
	Usage      *reported `json:"usage"`
	Meta       struct {
		Quota core.Raw `json:"quota"`
	} `json:"_meta"`
}

// read makes what the figure at a turn's end adds to what was counted. The protocol
// says both that it is the turn's and that it is the session's sum
// (agent-client-protocol issue 1860), and those who were tried give the turn's. What
// passed to the agent's model in the turn shows which it is, where it was seen.
func (s *spent) read(figure, seen int64) (more int64) {
	before := s.Tokens - s.asked // at the turn's begin
	if seen > 0 && before > 0 {
		s.Sums = distance(figure, before+seen) < distance(figure, seen)
	}
	more = figure
	if s.Sums && figure >= before {
		more -= before
	}
	more = max(0, more-s.asked) // it has those of the single requests
	s.Tokens += more
	return more
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// settleUsage counts what is left of the tokens of a turn: by the figure of its end
// where there is one, else by the contexts that the agent told of, when nothing better is
// known.
func (t *turn) settleUsage(end stopped) {
	s := t.s
	seen := int64(0)
	t.Speak(func() { seen = t.Seen() })
	var quota struct {
		Count struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"token_count"`
	}
	figure := end.Usage.tokens()
	if figure == 0 && len(end.Meta.Quota) > 0 && jsonrpc.Decode(end.Meta.Quota, &quota) == nil {
		figure = (&reported{Input: quota.Count.Input, Output: quota.Count.Output}).tokens()
	}
	s.mu.Lock()
	more, estimate := int64(0), s.spent.context
	if figure > 0 {
		more = s.spent.read(figure, seen)
	}
	if figure > 0 || s.spent.asked > 0 || seen > 0 {
		estimate = 0
	}
	s.spent.context, s.spent.asked = 0, 0
	s.mu.Unlock()
	s.keep()
	if estimate > 0 {
		t.emit(fleet.Event{Type: "log", Level: "DEBUG", Text: fmt.Sprintf("%d tokens, estimated from the contexts that the agent told of", estimate)})
	}
	if more += estimate; more > 0 {
		t.emit(fleet.Event{Type: "usage", Tokens: more})
	}
}

// keep remembers what was counted, so that another process counts on from there.
func (s *session) keep() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.mu.Lock()
	m := memory{Session: s.id, Told: s.told.Load(), Spent: s.spent}
	s.mu.Unlock()
	s.a.place.remember(m)
}
