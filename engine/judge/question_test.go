package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
)

// asks is a question of the robot's.
func asks(t *testing.T, q judge.Question) judge.Ask {
	t.Helper()
	args := expect.Of(q.Args())(t)
	ask := call("execute", "{}")
	ask.Gate, ask.Intent = judge.GateQuestion, q.Message
	ask.Action.Kind, ask.Action.Args = judge.KindQuestion, args
	return ask
}

var naming = judge.Question{
	Message: "Approve everything?", Agent: "robot",
	Schema: core.Raw(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"name":{"type":"string","maxLength":9},"loud":{"type":"boolean","default":false}},"required":["name"]}`),
}

func TestAQuestionIsAnsweredByWhatItsSchemaTakes(t *testing.T) {
	f := setup(t)
	a := f.opened(asks(t, naming))
	if a.Gate != judge.GateQuestion || a.Risk != judge.Low || a.RuleID != "" || a.Subject.Headline != "answer agent robot's question" || a.Subject.Effects != nil {
		t.Errorf("%+v", a)
	}
	for content, want := range map[string]string{
		"":                        "content: this question needs an answer",
		`[]`:                      "content: want a JSON object",
		`{}`:                      "content.name: missing",
		`{"name":"far too long"}`: "content.name: 12 characters is not allowed",
		`{"name":"a","more":1}`:   "content.more: unknown field",
	} {
		_, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(content)})
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", content, err, want)
		}
	}
	for field, ans := range map[string]judge.Answer{
		"edit":    {Approve: true, Content: core.Raw(`{"name":"a"}`), Edit: core.Raw(`{}`)},
		"always":  {Approve: true, Content: core.Raw(`{"name":"a"}`), Always: &judge.Always{For: "anyone", Expires: 1e9, MaxUses: 1}},
		"content": {Reason: "no", Content: core.Raw(`{"name":"a"}`)},
	} {
		_, err := f.Answer(t.Context(), bob, a.ApprovalID, ans)
		if code(err) != core.InvalidInput || core.AsError(err).Details["field"] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	done, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`), Digest: a.Digest})
	if err != nil || string(done.Content) != `{"loud":false,"name":"Ada"}` {
		t.Fatalf("%+v %v", done, err)
	}
	if out := f.owner.last(t); !out.Approved || string(out.Content) != string(done.Content) || out.Decision.ContentSHA256 != core.SHA256(string(done.Content)) {
		t.Errorf("%+v", out)
	}
	if d := f.decision(done.DecisionID); d.ContentSHA256 != core.SHA256(string(done.Content)) {
		t.Errorf("%+v", d)
	}
	page, err := f.ledger.Since(t.Context(), acme, 0, 1000)
	if log := string(core.MustEncode(page)); err != nil || strings.Contains(log, "Ada") || !strings.Contains(log, core.SHA256(string(done.Content))) {
		t.Errorf("%s %v", log, err)
	}
	f.healthy()
}

func TestContentAnswersNothingButAQuestion(t *testing.T) {
	f := setup(t)
	a := f.opened(call("fs.write", `{"path":"a"}`))
	_, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{}`)})
	if code(err) != core.InvalidInput || core.AsError(err).Details["field"] != "content" {
		t.Errorf("%v", err)
	}
}

func TestAChoiceIsJudgedAsTheCallThatItApproves(t *testing.T) {
	f := setup(t)
	choice := func(command string) judge.Ask {
		return asks(t, judge.Question{
			Message: "How?", Options: []judge.Option{{ID: "a", Label: "All at once"}, {ID: "b", Label: "Bit by bit"}},
			Call: core.MustEncode(map[string]any{"input": map[string]any{"command": command}}),
		})
	}
	if d, a := f.commit(choice("rm -rf /")); d.Decision != judge.Deny || a != nil {
		t.Errorf("%+v", d)
	}
	a := f.opened(choice("rm -rf build"))
	if a.Subject.Headline != "answer agent robot's question about execute rm -rf build" || a.Subject.Undo == "" || !a.Risk.AtLeast(judge.Medium) || len(a.Subject.Effects) == 0 {
		t.Errorf("%+v", a)
	}
	for content, want := range map[string]string{
		`{}`:                          "content.option",
		`{"option":"c"}`:              "allowed: a, b",
		`{"option":"a","approve":[]}`: "approve",
	} {
		_, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine", Content: core.Raw(content)})
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
	_, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine", Content: core.Raw(`{"option":"b"}`)})
	expect.No(t, err)
	if out := f.owner.last(t); string(out.Content) != `{"option":"b"}` {
		t.Errorf("%+v", out)
	}
}

func TestNoRuleAnswersAQuestion(t *testing.T) {
	all := strings.Replace(policy(ruleLine("all", "true", "approve")), "task.start", "tool.call", 1)
	_, err := judge.New(judge.Options{Policy: []byte(strings.Replace(all, "tool.call", "question", 1))})
	expect.Fails(t, err, "a rule may be about questions")
	f := setup(t, withPolicy(all))
	if v := f.Evaluate(t.Context(), acme, asks(t, naming)); v.Decision != judge.HITL || v.ReasonCode != "question" {
		t.Errorf("%+v", v)
	}
}

func TestSeveralWhoMustAgreeAnswerTheSame(t *testing.T) {
	f := setup(t, withPolicy(policy("  - {id: two, gates: [tool.call], when: 'true', decision: hitl, reason_code: two, risk: low, quorum: 2}\n")))
	ask := asks(t, judge.Question{Options: []judge.Option{{ID: "a"}, {ID: "b"}}, Call: core.Raw(`{"x":1}`)})
	a := f.opened(ask)
	if a.Needed() != 2 {
		t.Fatalf("%+v", a)
	}
	say := func(by core.Caller, option string) error {
		_, err := f.Answer(t.Context(), by, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine", Content: core.Raw(fmt.Sprintf(`{"option":%q}`, option))})
		return err
	}
	expect.No(t, say(alice, "a"))
	expect.Is(t, code(say(bob, "b")), core.Conflict)
	if err := say(bob, "a"); err != nil || f.approval(a.ApprovalID).Status != judge.Approved {
		t.Errorf("%v", err)
	}
}

func TestWhatCantBeAskedIsRefused(t *testing.T) {
	form := func(properties string) judge.Question {
		return judge.Question{Schema: core.Raw(`{"properties":{` + properties + `}}`)}
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d":{"type":"string"}`, i)
	}
	for want, q := range map[string]judge.Question{
		"message":                         {Message: strings.Repeat("m", judge.MaxQuestion+1)},
		"21 are not allowed":              form(strings.Join(many, ",")),
		`type "object" is not allowed`:    form(`"a":{"type":"object"}`),
		`type "" is not allowed`:          form(`"a":{"$ref":"#"}`),
		"properties.a: its name is not a": {},
		"is required and is none of them": {Schema: core.Raw(`{"required":["a"]}`)},
		"schema.type":                     {Schema: core.Raw(`{"type":"string"}`)},
		"options.id":                      {Options: []judge.Option{{ID: "a"}, {ID: "a"}}},
		"has that or options":             {Options: []judge.Option{{ID: "a"}}, Schema: core.Raw(`{}`)},
		"does not fit":                    form(`"a":{"type":"boolean","default":5}`),
	} {
		if want == "properties.a: its name is not a" {
			q, want = form(`"a\u202e":{"type":"string"}`), "its name is not allowed"
		}
		if _, err := q.Args(); code(err) != core.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, name := range []string{"password", "userPassword", "api_key", "apiKey", "APIKey", "access-token", "Раssword", "pin", "client secret", "ssh key", "pass code"} {
		if _, err := form(fmt.Sprintf(`%q:{"type":"string"}`, name)).Args(); err == nil || !strings.Contains(err.Error(), "a secret must not be asked for") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := form(`"a":{"type":"string","format":"password"}`).Args()
	expect.Fails(t, err, "a format password was taken")
	for _, name := range []string{"name", "max_tokens", "keyboard", "issue key", "opinion", "shipping", "secretary"} {
		_, err := form(fmt.Sprintf(`%q:{"type":"string"}`, name)).Args()
		expect.No(t, err, name)
	}
}

func TestASignatureCoversWhatAQuestionIsAnsweredWith(t *testing.T) {
	f := setup(t, withKeys(t, nil))
	a := f.opened(asks(t, naming))
	ans := judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`)}
	s, _, err := f.Statement(t.Context(), bob, a.ApprovalID, ans)
	if err != nil || s.Content == "" {
		t.Fatalf("%+v %v", s, err)
	}
	ans.SignedAt, ans.Signature = s.At, armored(t, s, signerOf(t, 1), judge.SignNamespace)
	other := ans
	other.Content = core.Raw(`{"name":"Eve"}`)
	_, err = f.Answer(t.Context(), bob, a.ApprovalID, other)
	expect.Is(t, code(err), core.Denied)
	done := expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, ans))(t)
	d := f.decision(done.DecisionID)
	expect.No(t, d.CheckSignature())
	if d.ContentSHA256 = core.SHA256("{}"); d.CheckSignature() == nil {
		t.Error("another content has the same signature")
	}
}

func TestAnAnswersContentIsErased(t *testing.T) {
	f := setup(t)
	a := f.opened(asks(t, naming))
	expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`)}))(t)
	if !f.start(a.ApprovalID, asks(t, naming)) {
		t.Fatal("it does not stand")
	}
	of := &record.Subject{Name: "bob", Task: func(*audit.Tx, string) (record.Whose, bool, error) { return record.NotTheirs, true, nil }}
	if _, n, err := f.Erasers()[1].Erase(t.Context(), alice, of, nil); err != nil || n != 1 {
		t.Fatalf("%d %v", n, err)
	}
	if now := f.approval(a.ApprovalID); !core.IsErased(now.Content) {
		t.Errorf("%+v", now)
	}
	f.healthy()
}
