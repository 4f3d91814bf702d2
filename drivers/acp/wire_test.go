package acp

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// wireLine is one line of a wire: a message of one direction, or a mark.
type wireLine struct {
	mark string
	text string // as it went over
	message
}

// message is what is looked at of one. Nothing of the driver's own reading is used, so that
// the two can be compared.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Update   json.RawMessage `json:"update"`
		ToolCall json.RawMessage `json:"toolCall"`
		Options  []struct {
			OptionID string `json:"optionId"`
			Kind     string `json:"kind"`
		} `json:"options"`
		Prompt []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	} `json:"params"`
	Result struct {
		StopReason string  `json:"stopReason"`
		Usage      *figure `json:"usage"`
		Meta       struct {
			Quota struct {
				Count struct {
					Input  int64 `json:"input_tokens"`
					Output int64 `json:"output_tokens"`
				} `json:"token_count"`
			} `json:"quota"`
		} `json:"_meta"`
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	} `json:"result"`
}

// figure is what an agent says of the tokens of some work.
type figure struct {
	Total  int64 `json:"totalTokens"`
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Read   int64 `json:"cachedReadTokens"`
	Wrote  int64 `json:"cachedWriteTokens"`
}

func readWire(t *testing.T, data []byte) (all []wireLine) {
	t.Helper()
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		l := wireLine{mark: line, text: ""}
		if mark := line[:min(2, len(line))]; mark == toAgent || mark == fromAgent {
			l = wireLine{mark: mark, text: line[2:]}
			_ = json.Unmarshal([]byte(l.text), &l.message) // some agents write what is no message
		} else if line != killed && line != started {
			t.Fatalf("a wire's line %.100q", line)
		}
		all = append(all, l)
	}
	return all
}

// key is what a message answers to, whatever ids the client gives: "method" of a request or
// notification, "#id" of an answer.
func (m message) key() string {
	if m.Method != "" {
		return m.Method
	}
	return "#" + string(m.ID)
}

// tape is what a test writes a wire to.
type tape struct {
	t    *testing.T
	file string
}

func (w tape) read() []byte {
	w.t.Helper()
	data, err := os.ReadFile(w.file)
	expect.Must(w.t, err == nil || os.IsNotExist(err), "%v", err)
	return data[:bytes.LastIndexByte(data, '\n')+1]
}

// killed notes that the agent's process is about to be killed.
func (w tape) killed() {
	w.t.Helper()
	expect.No(w.t, appendTo(w.file, killed+"\n"))
}
