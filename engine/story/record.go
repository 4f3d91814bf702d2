package story

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// record tells what an agent's record has: what it said, ran and edited.
func (s *teller) record() error {
	q := dag.Query{All: true, Filter: core.Filter{Agent: s.q.Agent, Page: 1, Size: 1}}
	first, err := s.DAG.Timeline(s.ctx, s.tenant, q)
	if err != nil {
		return err
	}
	var all []dag.Moment
	for q.Page, q.Size = (first.Info.Total+page-1)/page, page; q.Page > 0; q.Page-- {
		found, err := s.DAG.Timeline(s.ctx, s.tenant, q)
		if err != nil {
			return err
		}
		all = append(found.Items, all...)
		if s.more = len(all) >= mostEvents; s.more || len(all) > 0 && all[0].Event.TS.Time().Before(s.q.Since) {
			break
		}
	}
	calls := map[string]*dag.ToolCall{}
	for i := range all {
		e := &all[i].Event
		call, is := e.Body.(*dag.ToolCall)
		if is {
			calls[e.RunID+" "+call.CallID] = call
		}
		if e.TS.Time().Before(s.q.Since) || is {
			continue
		}
		if l := s.happened(&all[i], calls); l.What != "" {
			l.At, l.Agent, l.TaskID = e.TS.Time(), s.q.Agent, e.TaskID
			if l.Noun == "" {
				l.Noun, l.ID = "event", e.EventID
			}
			s.add(l)
		}
	}
	return nil
}

// happened is what a moment tells; without What it tells nothing.
func (s *teller) happened(m *dag.Moment, calls map[string]*dag.ToolCall) Line {
	switch b := m.Event.Body.(type) {
	case *dag.HistoryAppend:
		if m.Message != nil {
			return said(b.List, m.Message)
		}
	case *dag.ToolResult:
		call := calls[m.Event.RunID+" "+b.CallID]
		if call == nil {
			call = &dag.ToolCall{Tool: cmp.Or(m.Tool, "a tool")}
		}
		return ran(call, b)
	case *dag.Interruption:
		return Line{What: "failed", Text: "cut off: " + string(b.Reason), Bad: true}
	case *dag.ModelResponse:
		if b.Error != nil {
			return Line{What: "failed", Text: "the model: " + b.Error.Code + " " + b.Error.Message, Bad: true}
		}
	}
	return Line{}
}

func said(list string, m *dag.Message) Line {
	text := m.Text()
	switch {
	case list == "diff":
		path, changes, _ := strings.Cut(text, "\n")
		l := Line{What: Edited, like: path}
		for line := range strings.SplitSeq(changes, "\n") {
			switch {
			case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			case strings.HasPrefix(line, "+"):
				l.Added++
			case strings.HasPrefix(line, "-"):
				l.Removed++
			}
		}
		l.Text = fmt.Sprintf("%s +%d -%d", path, l.Added, l.Removed)
		return l
	case list == dag.ListFiles:
		return Line{What: Edited, Text: strings.ReplaceAll(text, "\n", ", ")}
	case list == "attention":
		return Line{What: "asked", Text: text, Bad: true}
	case list == dag.ListDecisions:
		if d, is := m.Decision(); is && d.Decision == "deny" && d.ApprovalID == "" {
			return Line{What: "denied", Text: d.Brief(), Bad: true, Noun: "decision", ID: d.DecisionID}
		}
	case list != dag.ListMain || strings.TrimSpace(text) == "" || len(m.Content) > 0 && m.Content[0].Type == "reasoning":
	case m.Role == dag.RoleAssistant:
		return Line{What: "said", Text: firstLine(text)}
	case m.Role == dag.RoleUser:
		return Line{What: "told", Text: firstLine(text)}
	}
	return Line{}
}

func firstLine(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.TrimSpace(more) != "" {
		line += " …"
	}
	return line
}

// tests are commands that test.
var tests = core.Pattern(`\b(test|tests|pytest|tox|vet|check|jest|vitest|ctest|rspec)\b`)

// ran is a call with what came of it.
func ran(call *dag.ToolCall, r *dag.ToolResult) Line {
	text, command := argsOf(call)
	l := Line{What: "ran", Text: text, Bad: r.Status != dag.CallOK, Exit: exitOf(r.Result)}
	if command && tests().MatchString(text) {
		l.What = "tests"
	}
	if !command {
		l.Exit = nil // of what it ran to do that
	}
	switch {
	case l.Exit != nil:
		l.Text, l.Bad = fmt.Sprintf("%s: exit %d", text, *l.Exit), l.Bad || *l.Exit != 0
	case l.Bad:
		l.Text += ": " + string(r.Status)
	case !command:
		l.like = call.Tool
	}
	if r.Error != nil {
		l.Text += " (" + core.ClipTo(strings.TrimSpace(r.Error.Code+" "+r.Error.Message), 120) + ")"
	}
	return l
}

// argsOf is what was called as one would type it; command says that it ran one.
func argsOf(call *dag.ToolCall) (text string, command bool) {
	var args map[string]core.Raw
	if err := core.DecodeStored(call.Args, &args); err != nil {
		args = nil
	}
	word := func(names ...string) string {
		for _, name := range names {
			var one string
			var many []string
			if raw := args[name]; raw == nil {
			} else if core.DecodeStored(raw, &one) == nil && one != "" {
				return one
			} else if core.DecodeStored(raw, &many) == nil && len(many) > 0 {
				return core.Join(many)
			}
		}
		return ""
	}
	if text = word("command", "cmd", "argv", "script"); text != "" {
		return core.ClipTo(firstLine(text), 160), true
	}
	if text = word("file_path", "path", "file", "pattern", "query", "url", "uri", "title", "text"); text == "" && len(args) > 0 {
		text = string(call.Args)
	}
	return core.ClipTo(strings.TrimSpace(call.Tool+" "+firstLine(text)), 160), false
}

// exitOf is the exit code in what a command gave back; nil without one.
func exitOf(result core.Raw) *int {
	var r struct {
		A *int `json:"exit_code"`
		B *int `json:"exitCode"`
		C *int `json:"rc"`
	}
	if err := core.DecodeStored(result, &r); err != nil {
		return nil
	}
	return cmp.Or(r.A, r.B, r.C)
}

// folded puts lines into one that are alike and follow one another.
func folded(lines []Line) (all []Line) {
	for _, l := range lines {
		last := len(all) - 1
		if last < 0 || l.like == "" || all[last].like != l.like || all[last].What != l.What || all[last].Bad || l.Bad {
			all = append(all, l)
			continue
		}
		was := &all[last]
		l.Times, l.Added, l.Removed = max(was.Times, 1)+1, l.Added+was.Added, l.Removed+was.Removed
		if l.What == Edited {
			l.Text = fmt.Sprintf("%s +%d -%d", l.like, l.Added, l.Removed)
		}
		*was = l
	}
	return all
}
