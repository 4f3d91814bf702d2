package acp

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// says answers every question with a decision and a content.
func (s *stand) says(decision, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		return fleet.ToolAnswer{CallID: e.CallID, Decision: decision, Content: core.Raw(content), Reason: "by the test"}, nil
	}
}

func TestSeveralWaysToAllowACallAreAChoice(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.says("approve", `{"option":"o2"}`)
	s.ends(task.Succeeded, "", "choose allow_always allow_once allow_once reject_once")
	s.heard("message", "chose o2")
	e := s.of("tool_request")[0]
	if q := e.Asks; q == nil || q.Message != "How to go on" || len(q.Options) != 2 || q.Options[0].ID != "o1" || q.Options[0].Label != "Way allow_once" || !strings.Contains(string(q.Call), `"command":"make"`) {
		t.Errorf("%+v", e.Asks)
	}
	for _, never := range []string{`{"option":"o0"}`, `{"option":"o3"}`, `{}`, ``} { // allow_always, reject, none
		s.forget()
		s.says("approve", never)
		s.ends(task.Succeeded, "", "choose allow_always allow_once allow_once reject_once")
		s.heard("message", "chose o3")
	}
	s.forget()
	s.says("deny", "")
	s.ends(task.Succeeded, "", "choose allow_once allow_once")
	s.heard("message", "chose nothing")
	s.forget()
	s.says("approve", "")
	s.ends(task.Succeeded, "", "choose allow_once allow_always reject_once")
	s.heard("message", "chose o0")
	e = s.of("tool_request")[0]
	expect.True(t, e.Asks == nil, "nothing is to be chosen: %+v", e.Asks)
}

func TestAnAgentsQuestionIsAnsweredByAPerson(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.says("approve", `{"city":"Bern"}`)
	s.ends(task.Succeeded, "", "elicit city")
	s.heard("message", "told map[city:Bern]")
	e := s.of("tool_request")[0]
	expect.True(t, e.Tool == askPerson && e.Intent == "What is it?" && e.Asks != nil && strings.Contains(string(e.Asks.Schema), `"city"`), "%+v", e)
	s.says("deny", "")
	s.ends(task.Succeeded, "", "elicit city")
	s.heard("message", "declined")
	s.forget()
	s.prompt("elicit password")
	s.heard("message", "declined")
	s.heard("log", "a secret must not be asked for")
	expect.Is(t, len(s.of("tool_request")), 0, "questions were put")
}
