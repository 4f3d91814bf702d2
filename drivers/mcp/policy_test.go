package mcp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/expect"
)

func TestTheEmergencyStopFreezesWhatWrites(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, person, "", nil)
	expect.Of(h.eng.Swarm.EStops.Press(t.Context(), alice, "drill"))(t)
	use(t, cs, "list_agents", nil, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		use(t, cs, "send_message", map[string]any{"recipient_id": "Sony", "payload": map[string]any{}}, nil)
	}()
	select {
	case <-done:
		t.Error("it wrote under an emergency stop")
	case <-time.After(300 * time.Millisecond):
	}
	expect.Of(h.eng.Swarm.EStops.Thaw(t.Context(), alice, "over"))(t)
	<-done
}

func TestThePolicyIsAResourceThatTellsItsChanges(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			updated := make(chan string, 8)
			cs := h.stdio(t, person, era, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
			})
			list, err := cs.ListResources(t.Context(), nil)
			expect.Must(t, err == nil && len(list.Resources) == 4, "%v %v", list, err)
			r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: policyURI})
			expect.Must(t, err == nil && strings.Contains(r.Contents[0].Text, `"own.agent"`), "%v", err)
			expect.No(t, cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: rulesURI}))
			if era == "2026-07-28" {
				expect.Await(t, "the server's word", func() bool { return h.acknowledged.Load() == 1 }) // the client returns before it
			}
			agent := h.stdio(t, sony, era, nil)
			sent := make(chan struct{})
			send := func() {
				defer close(sent)
				use(t, agent, "send_message", map[string]any{"recipient_id": "system", "payload": map[string]any{}}, nil)
			}
			go send()
			h.answer(t, "send_message", judge.Answer{Approve: true, Always: &judge.Always{For: "agent", Expires: time.Hour, MaxUses: 5}})
			<-sent
			expect.Is(t, expect.From(t, updated, "no update"), rulesURI)
			r, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: rulesURI})
			expect.True(t, err == nil && strings.Contains(r.Contents[0].Text, `"send_message"`), "%v %v", r, err)
			sent = make(chan struct{})
			send() // the rule stands in for the person
			err = cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "resource://elsewhere"})
			expect.True(t, err != nil || era == "2026-07-28", "subscribed to what tells nothing")
		})
	}
}

func TestEffectsAndTheDefaultRulesAgree(t *testing.T) {
	j := expect.Of(judge.New(judge.Options{}))(t)
	for _, tool := range NewServer(nil, Options{}).order {
		for _, kind := range []core.ActorKind{core.Operator, core.Agent} {
			v := j.Evaluate(t.Context(), lab, judge.Ask{
				Gate: judge.GateTool, Action: judge.Action{Kind: "tool", Server: Name, Tool: tool.name, Args: core.Raw("{}")},
				By: core.Caller{Tenant: lab, Name: "x", Kind: kind},
			})
			want := judge.HITL
			judgedApart := slices.Contains([]string{"start_agent_task", "dispatch_task", "invoke_skill", "read_messages", "cad_operation", "propose_policy", "test_policy", "backtest_policy", "withdraw_policy", "request_grant", "reply_approval", "withdraw_approval"}, tool.name)
			if tool.effect == op.Reads || judgedApart || tool.effect == op.Writes && kind == core.Operator && tool.name != "create_agent" {
				want = judge.Approve
			}
			expect.Is(t, v.Decision, want, tool.name, "by", kind, v.RuleID)
		}
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	h := newHouse(t)
	tokens := &Tokens{}
	token := expect.Of(tokens.Issue(person))(t)
	url := h.web(t, tokens)
	const clients, calls = 20, 50
	var all sync.WaitGroup
	start := time.Now()
	for i := range clients {
		cs := expect.Of(dial(t, url, token, eras[i%2], nil))(t)
		all.Go(func() {
			for n := range calls {
				if n%5 == 0 {
					use(t, cs, "send_message", map[string]any{"recipient_id": "Sony", "payload": map[string]any{"from": i, "n": n}}, nil)
					continue
				}
				use(t, cs, "list_agents", nil, nil)
			}
		})
	}
	all.Wait()
	t.Logf("%d calls by %d clients: %.0f calls/s", clients*calls, clients, float64(clients*calls)/time.Since(start).Seconds())
	seen := map[string]bool{}
	for {
		got := expect.Of(h.eng.Bus.Read(t.Context(), core.Caller{Tenant: lab, Name: "Sony", Kind: core.Agent}, "Sony", 100))(t)
		if len(got) == 0 {
			break
		}
		for _, m := range got {
			seen[string(m.Payload)] = true
		}
	}
	expect.Is(t, len(seen), clients*calls/5)
}
