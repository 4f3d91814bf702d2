package face

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/notice"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/story"
	"swarmdeck/engine/witness"
)

func audited() []*Face {
	return []*Face{
		Of[audit.Event]{
			Noun: "event", ID: "event_id", Head: "event_type",
			List:    "TIME:8/1 TYPE:16*1 BY:10*1/3 WHAT:16*4/2 EVENT:4ki -SEQ -DOOR -AGE",
			Columns: "SEQ:seq EVENT:event_id TYPE:event_type BY:actor,20 DOOR:door AGE:created_at,age WHAT,60",
			Wide:    "TIME:created_at TRACE:trace_id",
			Cells: Cells[audit.Event]{
				"WHAT": func(e *audit.Event, _ At) string { return What(e) },
			},
		}.Face(),
		Of[story.Line]{
			Called:  "line",
			Columns: "AT:at AGENT:agent WHAT:what TEXT", List: "AT:8 AGENT:12/2 WHAT:8 TEXT:30*5k", Tool: "at what agent task_id text bad times rc noun id",
			Cells: Cells[story.Line]{
				"TEXT": func(l *story.Line, _ At) string {
					if text := l.String(); l.Begins() {
						return text
					} else {
						return "  " + text
					}
				},
			},
		}.Face(),
		Of[audit.Key]{
			Noun: "key", ID: "key_id",
			Columns: "KEY:key_id FROM:first_seq TO:last_seq SIGNED_BY STATUS EVENT:event_id VERIFIER:verifier,120",
			Cells: Cells[audit.Key]{
				"SIGNED_BY": func(k *audit.Key, _ At) string {
					switch {
					case k.Unsigned:
						return "UNSIGNED"
					case k.SignedBy == "":
						return "the first"
					}
					return k.SignedBy
				},
				"STATUS": func(k *audit.Key, _ At) string {
					switch {
					case k.Retired != "":
						return "retired by " + k.RetiredBy
					case k.Unsigned && k.Trusted:
						return "not trusted"
					case k.Last > 0:
						return "replaced"
					}
					return "signs"
				},
			},
		}.Face(),
		Of[audit.Delta]{Columns: "SUBJECT:subject ID:id FIELD:field BY_THE_LOG:log,40 IN_THE_STORE:store,40"}.Face(),
		Of[witness.Status]{
			Noun: "witness", ID: "name",
			Columns: "WITNESS:name KIND:kind TO,60 HOLDS:published UP_TO:size LAG:lag STATE,80",
			Wide:    "LAST_ERROR",
			Cells: Cells[witness.Status]{
				"TO": func(w *witness.Status, _ At) string { return w.Path + core.Join(w.Command) },
				"STATE": func(w *witness.Status, at At) string {
					switch {
					case w.Failing:
						return "failing: " + w.LastError
					case w.PublishedAt.IsZero():
						return "nothing published yet"
					}
					return "published " + at.Age(w.PublishedAt) + " ago"
				},
				"LAST_ERROR": func(w *witness.Status, at At) string {
					if w.LastError == "" {
						return ""
					}
					return at.Age(w.FailedAt) + " ago: " + w.LastError
				},
			},
		}.Face(),
		Of[notice.Status]{
			Noun: "notice", ID: "name",
			Columns: "NOTICE:name ON:events,40 RISK:min_risk TO,40 TOLD:delivered LAG:lag STATE,60",
			Wide:    "LAST_ERROR:last_error",
			Cells: Cells[notice.Status]{
				"TO": func(n *notice.Status, _ At) string { return cmp.Or(n.URL, core.Join(n.Command)) },
				"STATE": func(n *notice.Status, at At) string {
					switch {
					case n.Failing:
						return "failing: " + n.LastError
					case n.DeliveredAt.IsZero():
						return "nothing told yet"
					}
					return "told " + at.Age(n.DeliveredAt) + " ago"
				},
			},
		}.Face(),
		Of[retention.Policy]{
			Noun: "retention of", ID: "kind",
			Columns: "KIND:kind AGE:age_s,s COUNT:count SIZE,right EXPORT:export,60",
			Wide:    "SET:updated_at",
			Cells: Cells[retention.Policy]{
				"SIZE": func(p *retention.Policy, _ At) string {
					if p.Bytes == 0 {
						return ""
					}
					return Size(p.Bytes)
				},
			},
		}.Face(),
	}
}

// What is what an event says.
func What(e *audit.Event) string { return cmp.Or(operator.HeldIn(e), eventOf(e), string(e.Payload)) }

// eventOf says what an event is about, how that is by it, and the short parts of its
// detail: digests, and what is told elsewhere, are for -o json.
func eventOf(e *audit.Event) string {
	p, err := e.Data()
	if err != nil || p.Subject == "" {
		return ""
	}
	var state struct {
		Status string `json:"status"`
		State  string `json:"state"`
	}
	var detail map[string]any
	_ = core.DecodeStored(p.State, &state) // what is none, or no object, adds nothing
	_ = core.DecodeStored(p.Detail, &detail)
	text := strings.TrimSpace(p.Subject + " " + core.ClipTo(p.ID, 40) + " " + state.Status + state.State)
	for _, name := range slices.Sorted(maps.Keys(detail)) {
		v := detail[name]
		if of, is := v.(map[string]any); is {
			v = cmp.Or(of["code"], of["rule_id"])
		}
		switch v := v.(type) {
		case string:
			if v != "" && len(v) <= 60 {
				text += ", " + name + " " + v
			}
		case bool, float64:
			text += fmt.Sprintf(", %s %v", name, v)
		}
	}
	return text
}
