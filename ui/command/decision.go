package command

import (
	"swarmdeck/engine/judge"
)

func decisionColumns(c *call) []column[judge.GateDecision] {
	type D = judge.GateDecision
	return []column[D]{
		{title: "ID", text: func(d D) string { return d.DecisionID }},
		{title: "DECISION", text: func(d D) string { return d.Word() }},
		{title: "GATE", text: func(d D) string { return string(d.Gate) }},
		{title: "REASON", most: 32, text: func(d D) string { return d.ReasonCode }},
		{title: "CONF", right: true, text: func(d D) string { return confidence(d.Confidence) }},
		{title: "BY", most: 16, text: func(d D) string { return d.DecidedBy }},
		{title: "AGENT", text: func(d D) string { return d.Agent }},
		{title: "AGE", right: true, text: func(d D) string { return c.age(d.CreatedAt) }},
		{title: "TASK", text: func(d D) string { return d.TaskID }},
		{title: "KIND", wide: true, text: func(d D) string { return d.Kind }},
		{title: "RULE", wide: true, text: func(d D) string { return d.RuleID }},
		{title: "APPROVAL", wide: true, text: func(d D) string { return d.ApprovalID }},
		{title: "DOOR", wide: true, text: func(d D) string { return string(d.Door) }},
		{title: "POLICY", wide: true, text: func(d D) string { return d.PolicyVersion }},
		{title: "DIGEST", wide: true, text: func(d D) string { return d.Digest }},
		{title: "TRACE", wide: true, text: func(d D) string { return d.TraceID }},
		{title: "CREATED", wide: true, text: func(d D) string { return stamp(d.CreatedAt) }},
	}
}
