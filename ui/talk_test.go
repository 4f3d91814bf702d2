package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
)

// talk is the part of a fakeWorld that is about skills and messages.
type talk struct {
	skills    []*skill.Skill
	runs      []skill.Execution // newest first
	subagents []skill.Subagent  // newest first
	messages  []bus.Message     // oldest first
	readers   []bus.SubscriptionInfo
	boxes     []bus.Mailbox
}

func uuid(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000000", n) }

func ago(d time.Duration) time.Time { return start.Add(-d) }

// newTalk is newWorld with skills that ran, a subagent in each state, and
// messages.
func newTalk() *fakeWorld {
	w := newWorld()
	made := func(name, version, what string, tags []string, effects []skill.Effect, needs []string, params, returns string, spec skill.Spec) {
		w.skills = append(w.skills, &skill.Skill{
			TenantID: tenant, Name: name, Version: version, Description: what, Tags: tags, Effects: effects, Dependencies: needs,
			ParametersSchema: core.Raw(params), ReturnsSchema: core.Raw(returns), Timeout: 30, MaxRetries: 2, Runner: spec,
			Digest: strings.Repeat("ef", 32), Source: "/srv/skills/" + name + ".yaml", CreatedAt: ago(time.Hour), UpdatedAt: ago(time.Hour),
		})
	}
	sh := func(file string) skill.Spec { return skill.Spec{Kind: "exec", Argv: []string{"sh", file}} }
	made("detect", "1.2.0", "See what is there", []string{"vision"}, []skill.Effect{skill.Read}, []string{"navigate"},
		`{"type":"object","properties":{"area":{"type":"string","description":"where to look"},"mode":{"enum":["fast","exact"],"default":"fast"}},"required":["area"]}`,
		`{"type":"object","properties":{"objects":{"type":"array","items":{"type":"string"}},"object_id":{"type":"string"}}}`, sh("detect.sh"))
	made("fetch-object", "1.0.0", "Go, look, take", []string{"demo"}, []skill.Effect{skill.Read, skill.Exec}, nil,
		`{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}`, "", skill.Spec{Kind: "composite", Steps: []skill.Step{
			{ID: "look", Skill: "detect", Params: core.Raw(`{"area":"${params.place}"}`), ErrorPolicy: skill.Fallback, Fallback: "grope"},
			{ID: "take", Skill: "grasp@1.0.0", Params: core.Raw(`{"object_id":"${look.object_id}"}`), ErrorPolicy: skill.Retry},
		}})
	made("grasp", "1.0.0", "Take something with the \x1b[31marm\u202e", []string{"motion", "arm"}, []skill.Effect{skill.Exec}, []string{"detect", "navigate"},
		`{"type":"object","properties":{"object_id":{"type":"string"},"force":{"type":"integer","minimum":1,"maximum":9,"default":3}},"required":["object_id"]}`,
		`{"type":"object","properties":{"grasped":{"type":"boolean"}}}`, sh("grasp.sh"))
	made("navigate", "2.0.0", "Drive to a place", []string{"motion", "navigation"}, []skill.Effect{skill.Exec}, nil,
		`{"type":"object","properties":{"location":{"type":"string"},"speed":{"type":"number","default":1}},"required":["location"]}`, "", sh("navigate.sh"))
	made("navigate", "1.0.0", "Drive to a place", []string{"motion"}, []skill.Effect{skill.Exec}, nil, `{"type":"object"}`, "", sh("navigate.sh"))

	run := func(n int, name, version, step string, agent int, status skill.Status, took int64, text string) {
		e := skill.Execution{
			TenantID: tenant, ExecutionID: uuid(100 + n), AgentID: uuid(agent), TaskID: id("tk", 1), TraceID: trace, SkillName: name, SkillVersion: version,
			Parameters: core.Raw(`{"area":"kitchen"}`), Status: status, StartedAt: ago(time.Duration(n) * time.Minute), DurationMS: took, Step: step, Kind: "exec",
			Digest: strings.Repeat("ef", 32),
		}
		switch status {
		case skill.StatusSuccess:
			e.Result = core.Raw(text)
		case skill.StatusPending:
		default:
			e.Error, e.RetryCount = text, 2
		}
		if status != skill.StatusPending {
			e.CompletedAt = e.StartedAt.Add(time.Duration(took) * time.Millisecond)
		}
		w.runs = append(w.runs, e)
	}
	run(1, "detect", "1.2.0", "detect", 1, skill.StatusPending, 0, "")
	run(2, "navigate", "2.0.0", "navigate", 1, skill.StatusSuccess, 1250, `{"status":"there","final_position":{"x":10,"y":5}}`)
	run(3, "detect", "1.2.0", "fetch-object/look", 4, skill.StatusTimeout, 30000, "no result within 30s")
	run(4, "detect", "1.2.0", "fetch-object/look", 5, skill.StatusSuccess, 420, `{"objects":["cup"],"object_id":"cup-1"}`)
	run(5, "grasp", "1.0.0", "fetch-object/take", 5, skill.StatusSuccess, 95_000, `{"grasped":true}`)

	sub := func(n int, name string, state skill.State, asked, step, text string) {
		a := skill.Subagent{
			TenantID: tenant, AgentID: uuid(n), Name: name, State: state, Skill: asked, AssignedSkill: step, Step: step, TaskID: id("tk", 1), TraceID: trace,
			SessionID: id("se", 1), Error: text, CreatedAt: ago(time.Duration(n) * time.Minute), UpdatedAt: ago(time.Duration(n) * time.Minute), CreatedBy: "ada",
			Results: map[string]core.Raw{}, Metadata: core.Raw(`{"priority":"high"}`),
		}
		if state != skill.Idle {
			a.StartedAt = a.CreatedAt
		}
		if state.Final() {
			a.CompletedAt = a.CreatedAt.Add(30 * time.Second)
		}
		for i := range w.runs {
			if r := &w.runs[i]; r.AgentID == a.AgentID && r.Result != nil {
				a.Results[r.SkillName] = r.Result
			}
		}
		w.subagents = append(w.subagents, a)
	}
	sub(1, "Grasper-1", skill.Running, "grasp", "detect", "")
	sub(2, "", skill.Paused, "navigate@2.0.0", "navigate", "")
	sub(3, "spare", skill.Idle, "", "", "")
	sub(4, "Looker", skill.Failed, "fetch-object", "fetch-object/look", "detect: no result within \x1b[2J30s")
	sub(5, "Fetcher", skill.Completed, "fetch-object", "", "")
	sub(6, "Asker", skill.Running, "grasp", "grasp", "")
	w.subagents[5].Waiting = id("ap", 5)
	ask := approval(5, judge.Medium, "run skill grasp@1.0.0", `{"skill":"grasp@1.0.0"}`)
	ask.Gate, ask.Action.Kind, ask.Action.Tool = judge.GateSkill, judge.KindSkill, "grasp"
	ask.Subject = reads().Subject(tenant, ask.Gate, &ask.Action, &ask.Agent)
	ask.Agent = judge.AgentRef{Name: uuid(6)}
	w.approvals = append(w.approvals, ask)

	send := func(n int, topic, to, from string, typ bus.Type, status bus.Status, thread int, payload string) *bus.Message {
		m := bus.Message{
			TenantID: tenant, MessageID: uuid(200 + n), Seq: uint64(n), Topic: topic, RecipientID: to, SenderID: from, MessageType: typ, Fate: bus.Fate{Status: status},
			Timestamp: ago(time.Duration(60-5*n) * time.Second), TTL: 60, Priority: 5, TraceID: trace, Payload: core.Raw(payload),
		}
		if thread > 0 {
			m.CorrelationID = uuid(300 + thread)
		}
		w.messages = append(w.messages, m)
		return &w.messages[len(w.messages)-1]
	}
	send(1, "navigation.complete", "", uuid(1), bus.Event, bus.Published, 0, `{"status":"there"}`)
	send(2, "", "scribe", "changes", bus.Request, bus.Taken, 1, `{"question":"where is the cup?"}`).ResponseID = uuid(204)
	send(3, "detection.failed", "", uuid(4), bus.Error, bus.Published, 0, `{"error":"no result within \u001b[2J30s"}`)
	send(4, "", "changes", "scribe", bus.Response, bus.Taken, 1, `{"answer":{"place":"kitchen","objects":["cup","plate"]}}`)
	send(5, "", "scribe", "changes", bus.Request, bus.Open, 2, `{"question":"and the plate?"}`).Unanswered = true
	send(6, "", "todo", "system", bus.Event, bus.Expired, 0, `{"n":6}`).Deliveries = []bus.Delivered{{RecipientID: "todo", Status: bus.Expired, At: ago(20 * time.Second), Reason: "not read in time"}}
	w.messages[0].Dead, w.messages[0].ResentAs = "expired", uuid(206)
	w.messages[2].Dead, w.messages[2].Deliveries = "refused", []bus.Delivered{{Subscription: "indexer", Status: bus.Refused, At: ago(40 * time.Second), Reason: "can't read it"}}
	w.messages[5].Dead = "expired"
	w.readers = []bus.SubscriptionInfo{
		{Name: "indexer", Pattern: "navigation.>", By: "ada", Durable: true, Lag: 12, Missed: 3, CreatedAt: ago(time.Hour)},
		{Pattern: "*.failed", By: "todo", Open: true, Unacked: 1},
	}
	w.boxes = []bus.Mailbox{{RecipientID: "scribe", Open: 1, Oldest: ago(35 * time.Second)}}
	return w
}

func (t *talk) figures() bus.Figures {
	f := bus.Figures{Messages: int64(len(t.messages)), Seq: uint64(len(t.messages))}
	for i := range t.messages {
		if t.messages[i].Unanswered {
			f.Unanswered++
		}
		if t.messages[i].Status == bus.Open {
			f.Open++
		}
		if t.messages[i].Dead != "" && t.messages[i].ResentAs == "" {
			f.Dead++
		}
	}
	return f
}

func (w fakeSkills) Skill(_, ref string) (*skill.Skill, error) {
	return one(w.skills, "skill", ref, func(s *skill.Skill) string {
		if s.Name == ref {
			return ref
		}
		return s.Ref()
	})
}

func (w fakeSkills) List(t string, f core.Filter, tags ...string) (core.Page[*skill.Skill], error) {
	return page(w.fakeWorld, w.skills, f, func(s *skill.Skill) bool {
		for _, tag := range tags {
			if !slices.Contains(s.Tags, tag) {
				return false
			}
		}
		return t == tenant && strings.Contains(s.Ref()+s.Description, f.Match)
	})
}

func (w fakeSkills) Order(t, ref string) (order []*skill.Skill, err error) {
	s, err := w.Skill(t, ref)
	if err != nil {
		return nil, err
	}
	for _, need := range s.Dependencies {
		before, err := w.Order(t, need)
		if err != nil {
			return nil, err
		}
		for _, b := range before {
			if !slices.Contains(order, b) {
				order = append(order, b)
			}
		}
	}
	return append(order, s), nil
}

func (w fakeSkills) Figures(_ context.Context, _, name string) (skill.Figures, error) {
	f := skill.Figures{Skill: name}
	var took []int64
	failed := 0
	for _, e := range w.runs {
		if e.SkillName != name {
			continue
		}
		if f.Total++; e.Status == skill.StatusPending {
			continue
		}
		took = append(took, e.DurationMS)
		if e.Status != skill.StatusSuccess {
			failed++
		}
	}
	if f.Counted = len(took); f.Counted > 0 {
		slices.Sort(took)
		f.P50MS, f.P95MS, f.FailureRate = took[(len(took)-1)/2], took[len(took)-1], float64(failed)/float64(len(took))
	}
	return f, nil
}

func (w fakeSkills) Execution(_ context.Context, _, want string) (skill.Execution, error) {
	return one(w.runs, "execution", want, func(e skill.Execution) string { return e.ExecutionID })
}

func (w fakeSkills) Executions(_ context.Context, t, name string, f core.Filter) (core.Page[skill.Execution], error) {
	return page(w.fakeWorld, w.runs, f, func(e skill.Execution) bool {
		return t == tenant && (name == "" || e.SkillName == name) && (f.Agent == "" || e.AgentID == f.Agent) && (f.Status == "" || f.Status == string(e.Status))
	})
}

func (w fakeSkills) Subagent(_ context.Context, _, want string) (skill.Subagent, error) {
	return one(w.subagents, "subagent", want, func(a skill.Subagent) string { return a.AgentID })
}

func (w fakeSkills) Subagents(_ context.Context, t string, f core.Filter) (core.Page[skill.Subagent], error) {
	return page(w.fakeWorld, w.subagents, f, func(a skill.Subagent) bool {
		return t == tenant && (f.Status == "" || f.Status == string(a.State))
	})
}

func (w fakeBus) Get(_ context.Context, _, want string) (bus.Message, error) {
	return one(w.messages, "message", want, func(m bus.Message) string { return m.MessageID })
}

func (w fakeBus) List(_ context.Context, t string, q bus.Query) (core.Page[bus.Message], error) {
	all := slices.Clone(w.messages)
	slices.Reverse(all)
	return page(w.fakeWorld, all, q.Filter, func(m bus.Message) bool {
		return t == tenant && (q.Correlation == "" || m.CorrelationID == q.Correlation)
	})
}

func (w fakeBus) Recent(ctx context.Context, t, pattern string, n int) ([]bus.Message, uint64, error) {
	got, seq, err := w.Since(ctx, t, pattern, 0, len(w.messages)+1)
	return got[max(0, len(got)-n):], seq, err
}

func (w fakeBus) Since(_ context.Context, t, pattern string, seq uint64, n int) (got []bus.Message, next uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	var p bus.Pattern
	if pattern != "" {
		if p, err = bus.ParsePattern(pattern); err != nil {
			return nil, seq, err
		}
	}
	for _, m := range w.messages {
		if m.Seq > seq && len(got) < n && t == tenant {
			if seq = m.Seq; pattern == "" || p.Match(m.Topic) {
				got = append(got, m)
			}
		}
	}
	return got, seq, nil
}

func (w fakeBus) Subscriptions(_ context.Context, t string) ([]bus.SubscriptionInfo, error) {
	if t != tenant {
		return nil, nil
	}
	return slices.Clone(w.readers), nil
}

func (w fakeBus) Mailboxes(_ context.Context, t string) ([]bus.Mailbox, error) {
	if t != tenant {
		return nil, nil
	}
	return slices.Clone(w.boxes), nil
}
