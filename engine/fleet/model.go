package fleet

import (
	"fmt"
	"time"

	"swarmdeck/engine/core"
)

// ModelCall is what a model is asked, or what it answered, where a runtime
// sees the two talk. The tokens are for the record: what counts for budgets
// comes as an event of type usage.
type ModelCall struct {
	Name string // of the model
	// Sessions are what a request says it is part of, where its API has a place
	// for that. The agent chose them.
	Sessions []string
	Params   core.Raw       // of a request: its settings, an object
	Tools    core.Raw       // of a request, as the model is given them
	Messages []ModelMessage // the whole conversation, or the answer alone
	Tokens   *ModelTokens   // of an answer, where it tells of them
	Finish   string         // of an answer: why it ends, in the provider's word
	Fault    string         // of an answer that is not ok: a short code
	Gone     bool           // of one that is interrupted: the agent gave it up
	Took     time.Duration
}

// ModelMessage is one message of a conversation with a model.
type ModelMessage struct {
	Role  string // system, user, assistant, tool
	Parts []ModelPart
}

// ModelPart is a part of a message (seed 4, ContentPart).
type ModelPart struct {
	Type    string // text, image_url, tool_use, tool_result, reasoning
	Text    string
	URL     string
	ID      string // of the call
	Name    string
	Input   core.Raw
	Output  core.Raw
	IsError bool
}

// ModelTokens is what an answer took. The prompt's hold the cached ones too.
type ModelTokens struct{ Prompt, Completion, Total, Cached int64 }

// modelLine is the log's line about an answer.
func modelLine(e *Event) (level, text string) {
	c := e.Model
	if c == nil {
		return "WARN", "a model was asked, of which nothing is known"
	}
	text = fmt.Sprintf("model %s: %s", cut(c.Name, maxCall), cut(e.Status, maxCall))
	if t := c.Tokens; t != nil {
		text += fmt.Sprintf(", %d tokens in (%d cached), %d out", t.Prompt, t.Cached, t.Completion)
	}
	text += fmt.Sprintf(", %s", c.Took.Round(time.Millisecond))
	if e.Status == "ok" {
		return "DEBUG", text
	}
	return "WARN", text + ": " + oneLine(c.Fault+" "+e.Error, maxIntent)
}
