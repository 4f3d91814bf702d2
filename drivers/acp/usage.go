package acp

import (
	"fmt"
	"math"
	"slices"

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
	// Untold is what was seen to pass in turns that ended without a figure, as a turn
	// does that is cancelled; the next figure may have it.
	Untold int64 `json:"untold,omitzero"`

	// Of the turn under way.
	context int64       // the contexts of its requests, in all: see spend
	least   int64       // of the largest that is counted beyond asked, until more is known
	asked   int64       // by single requests: see requested
	split   fleet.Split // of those

	foreign bool // a cost in another currency was told of
}

// most is the largest number of tokens that one figure may tell of.
const most = 1 << 40

// reported is what an agent says that some work took. Whether the cached part is within
// the input differs; the total, where there is one, has all.
type reported struct {
	Total   int64 `json:"totalTokens"`
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Thought int64 `json:"thoughtTokens"`
	Read    int64 `json:"cachedReadTokens"`
	Written int64 `json:"cachedWriteTokens"`
}

// split tells input, output and cached apart. Where the total has the cached part
// beside the input, it is added to that.
func (u *reported) split() fleet.Split {
	if u.tokens() == 0 {
		return fleet.Split{}
	}
	out := fleet.Split{Input: u.Input, Output: u.Output, Cached: u.Read}
	if u.Total >= u.Input+u.Output+u.Read+u.Written {
		out.Input += u.Read + u.Written
	}
	return out
}

// tokens is their number; 0 for figures that can't be.
func (u *reported) tokens() int64 {
	if u == nil {
		return 0
	}
	if all := []int64{u.Total, u.Input, u.Output, u.Thought, u.Read, u.Written}; slices.Min(all) < 0 || slices.Max(all) > most {
		return 0
	}
	return max(u.Total, u.Input+u.Output)
}

// spend takes an update about usage. A context that is used was asked about: it counts
// at once, so that a budget holds within a turn, and what the turn's end tells beyond it
// then. It is the only figure that some agents give: each is taken for one request
// to the model. The cost is a running sum; one that falls began anew.
func (s *session) spend(u update) {
	s.mu.Lock()
	var now fleet.Event
	if u.Used > 0 && u.Used < math.MaxInt32 {
		if s.used() { // one that was just taken up tells what it had used before
			s.spent.context += u.Used
		}
		now.Context = fleet.Context{Used: u.Used, Size: max(0, min(u.Size, math.MaxInt32))}
		if s.turn.Load() != nil {
			now.Tokens = max(0, u.Used-s.spent.asked-s.spent.least)
			s.spent.least += now.Tokens
		}
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
	if now.Type, now.CostUSD = "usage", more; more > 0 || now.Context.Used > 0 {
		s.a.hear(now)
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
	split := u.split()
	t.s.mu.Lock()
	sp := &t.s.spent
	sp.asked += n
	sp.Tokens += n
	sp.split = sp.split.Plus(split)
	known := min(n, sp.least)
	sp.least -= known
	t.s.mu.Unlock()
	t.emit(fleet.Event{Type: "usage", Tokens: n - known, Split: split})
}

// stopped is the answer to a prompt.
type stopped struct {
	StopReason string    `json:"stopReason"`
	Usage      *reported `json:"usage"`
	Meta       struct {
		Quota core.Raw `json:"quota"`
	} `json:"_meta"`
}

// read makes what the figure at a turn's end, 0 where there is none, adds to what was
// counted. The protocol says both that it is the turn's and that it is the session's sum
// (agent-client-protocol issue 1860), and those who were tried give the turn's. What
// passed to the agent's model in the turn shows which it is, where it was seen.
func (s *spent) read(figure, seen int64, setting string) (more int64) {
	if figure == 0 {
		s.Untold += max(0, seen-s.asked)
		return 0
	}
	before := s.Tokens - s.asked // at the turn's begin
	if setting != "" {
		s.Sums = setting == "session"
	} else if seen > 0 && before > 0 {
		s.Sums = distance(figure, before+seen) < distance(figure, seen)
	}
	more = figure
	if s.Sums && figure >= before {
		more -= before
	}
	if seen > 0 && distance(more, s.Untold+seen) < distance(more, seen) {
		s.Tokens += s.Untold
		more -= s.Untold
	}
	s.Untold = 0
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
	seen := int64(0) // since the prompt, of which a turn may have several
	t.Speak(func() { seen, t.seen = t.Seen()-t.seen, t.Seen() })
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
	more, estimate, split := s.spent.read(figure, seen, s.a.place.Usage), s.spent.context, fleet.Split{}
	if more == figure { // all of it is of this turn
		split = end.Usage.split()
	}
	if figure > 0 || s.spent.asked > 0 || seen > 0 {
		estimate = 0
	}
	least := s.spent.least
	s.spent.context, s.spent.asked, s.spent.least, s.spent.split = 0, 0, 0, fleet.Split{}
	s.mu.Unlock()
	s.keep()
	if estimate > 0 {
		t.emit(fleet.Event{Type: "log", Level: "DEBUG", Text: fmt.Sprintf("%d tokens, estimated from the contexts that the agent told of", estimate)})
	}
	if more = max(0, more+estimate-least); more > 0 || split != (fleet.Split{}) {
		t.emit(fleet.Event{Type: "usage", Tokens: more, Split: split})
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
