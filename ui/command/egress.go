package command

import (
	"strconv"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/op"
)

func egressColumns(c *call) []column[egress.Rule] {
	type R = egress.Rule
	return []column[R]{
		{title: "HOST", most: 60, text: func(r R) string { return r.Where() }},
		{title: "RULE", text: func(r R) string { return op.EgressState(r, c.now()) }},
		{title: "REQUESTS", most: 50, text: func(r R) string {
			if r.Opaque {
				return "unread"
			}
			return r.What()
		}},
		{title: "FOR", text: func(r R) string {
			if whom := r.Whom(); whom != "" {
				return whom
			}
			return "everybody"
		}},
		{title: "LEFT", right: true, text: func(r R) string {
			if r.ExpiresAt.IsZero() {
				return ""
			}
			return short(max(0, r.ExpiresAt.Sub(c.now())))
		}},
		{title: "PRIVATE", text: func(r R) string {
			if r.Private {
				return "yes"
			}
			return ""
		}},
		{title: "OWNER", text: func(r R) string { return r.Owner }},
		{title: "HOSTS", wide: true, text: func(r R) string { return strings.Join(r.Hosts, " ") }},
	}
}

// egressDetail is what the events of connections say.
type egressDetail struct {
	Run      string `json:"run"`
	Process  string `json:"process"`
	Method   string `json:"method"`
	Path     string `json:"path"`
	Reason   string `json:"reason"`
	Count    int    `json:"connections"`
	Refused  int    `json:"refused"`
	Sent     int64  `json:"sent_bytes"`
	Received int64  `json:"received_bytes"`
}

func connectionColumns(c *call) []column[op.Connection] {
	type E = op.Connection
	detail := func(e E) (p struct {
		ID     string       `json:"id"`
		Detail egressDetail `json:"detail"`
	},
	) {
		_ = core.DecodeStored(e.Payload, &p) // an event of another shape has empty cells
		return p
	}
	number := func(of func(egressDetail) int64) func(E) string {
		return func(e E) string {
			if e.EventType != "egress.used" {
				return ""
			}
			return strconv.FormatInt(of(detail(e).Detail), 10)
		}
	}
	return []column[E]{
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.CreatedAt) }},
		{title: "WHAT", text: func(e E) string { return strings.TrimPrefix(e.EventType, "egress.") }},
		{title: "HOST", most: 50, text: func(e E) string { return detail(e).ID }},
		{title: "REQUEST", most: 50, text: func(e E) string { return strings.TrimSpace(detail(e).Detail.Method + " " + detail(e).Detail.Path) }},
		{title: "BY", most: 24, text: func(e E) string { return e.Actor }},
		{title: "PROCESS", text: func(e E) string { return detail(e).Detail.Process }},
		{title: "CONNECTIONS", right: true, text: number(func(d egressDetail) int64 { return int64(d.Count) })},
		{title: "SENT", right: true, text: number(func(d egressDetail) int64 { return d.Sent })},
		{title: "RECEIVED", right: true, text: number(func(d egressDetail) int64 { return d.Received })},
		{title: "REFUSED", right: true, wide: true, text: number(func(d egressDetail) int64 { return int64(d.Refused) })},
		{title: "RUN", wide: true, text: func(e E) string { return detail(e).Detail.Run }},
		{title: "EVENT", wide: true, text: func(e E) string { return e.EventID }},
		{title: "WHY", most: 60, text: func(e E) string { return detail(e).Detail.Reason }},
	}
}

func liveEgress(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Egress.Rules(c.ctx, tenant)
	found := candidates(all, err, func(r egress.Rule) Candidate {
		return Candidate{r.Where(), strings.TrimSpace(string(r.Effect) + " " + r.Whom())}
	})
	names, about := egress.Presets()
	for i, name := range names {
		found = append(found, Candidate{name, about[i]})
	}
	return found
}
