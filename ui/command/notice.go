package command

import (
	"strconv"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/notice"
)

func noticeColumns(c *call) []column[notice.Status] {
	type N = notice.Status
	return []column[N]{
		{title: "NOTICE", text: func(n N) string { return n.Name }},
		{title: "ON", most: 40, text: func(n N) string { return strings.Join(n.Events, ",") }},
		{title: "RISK", text: func(n N) string { return string(n.MinRisk) }},
		{title: "TO", most: 40, text: func(n N) string {
			if n.URL != "" {
				return n.URL
			}
			return Join(n.Command)
		}},
		{title: "TOLD", right: true, text: func(n N) string { return strconv.FormatInt(n.Delivered, 10) }},
		{title: "LAG", right: true, text: func(n N) string { return strconv.FormatUint(n.Lag, 10) }},
		{title: "STATE", most: 60, text: func(n N) string {
			switch {
			case n.Failing:
				return "failing: " + n.LastError
			case n.DeliveredAt.IsZero():
				return "nothing told yet"
			}
			return "told " + c.age(n.DeliveredAt) + " ago"
		}},
		{title: "LAST ERROR", wide: true, text: func(n N) string { return n.LastError }},
	}
}

func liveNotices(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Notices.List(c.ctx, tenant)
	return candidates(all, err, func(n notice.Status) Candidate { return Candidate{n.Name, strings.Join(n.Events, ",")} })
}
