package exec

import (
	"cmp"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// geminiEvent is a line of gemini -o stream-json, or all that gemini -o json prints:
// that has no type, and comes on standard error where it is an error.
type geminiEvent struct {
	Type    string `json:"type"`
	Session string `json:"session_id"`

	Role     string `json:"role"` // of a message
	Content  string `json:"content"`
	Delta    bool   `json:"delta"`
	Severity string `json:"severity"` // of an error, after which it may go on
	Message  string `json:"message"`

	CallID string   `json:"tool_id"`
	Tool   string   `json:"tool_name"`
	Args   core.Raw `json:"parameters"`
	Output string   `json:"output"`
	Status string   `json:"status"` // success or error

	Response string `json:"response"`
	Error    struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats struct { // of this process
		Total  int64 `json:"total_tokens"`
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached"`
		Models map[string]struct {
			Tokens struct {
				Total  int64 `json:"total"`
				Input  int64 `json:"prompt"`
				Cached int64 `json:"cached"`
			} `json:"tokens"`
		} `json:"models"`
	} `json:"stats"`
}

func readGemini(h *hearing, raw core.Raw) bool {
	var e geminiEvent
	if core.DecodeStored(raw, &e) != nil {
		return false
	}
	switch e.Type {
	case "init":
		h.began(e.Session)
	case "message":
		switch {
		case e.Role == "user": // our own words
		case e.Delta:
			h.piece(e.Content)
		default:
			h.message("message", e.Content)
		}
	case "tool_use":
		h.call(e.CallID, e.Tool, about(e.Args), e.Args)
	case "tool_result":
		why := ""
		if e.Status != "success" {
			why = cmp.Or(told(e.Error.Message), e.Output, e.Status)
		}
		h.done(e.CallID, map[string]string{"output": core.ClipTo(e.Output, core.MaxInput/2)}, why)
	case "error":
		h.log("WARN", e.Message)
		if e.Severity != "warning" {
			h.complaint = core.ClipTo(told(e.Message), 4096)
		}
	case "result":
		h.geminiResult(&e)
	case "":
		if e.Session == "" && e.Error.Message == "" {
			return false
		}
		if e.Status = "success"; e.Error.Message != "" {
			e.Status = "error"
		}
		h.acts = true
		h.began(e.Session)
		h.message("message", e.Response)
		h.geminiResult(&e)
	default:
		return false
	}
	return true
}

func (h *hearing) geminiResult(e *geminiEvent) {
	sum := fleet.Split{Input: e.Stats.Input, Output: e.Stats.Total - e.Stats.Input, Cached: e.Stats.Cached}
	if e.Stats.Total == 0 {
		for _, m := range e.Stats.Models {
			sum = sum.Plus(fleet.Split{Input: m.Tokens.Input, Output: m.Tokens.Total - m.Tokens.Input, Cached: m.Tokens.Cached})
		}
	}
	h.spend(sum, 0)
	why := ""
	if e.Status != "success" {
		why = cmp.Or(told(e.Error.Message), h.complaint, "it ended with status "+core.ClipTo(e.Status, 64))
	}
	h.hint = e.Error.Type
	h.finish(why)
}

// told is the message within an error that repeats the API's JSON.
func told(message string) string {
	var api struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	from, to := strings.Index(message, "{"), strings.LastIndex(message, "}")
	if from < 0 || to < from || core.DecodeStored(core.Raw(message[from:to+1]), &api) != nil {
		return message
	}
	return cmp.Or(api.Error.Message, message)
}
