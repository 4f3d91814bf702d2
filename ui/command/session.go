package command

import (
	"strconv"
	"strings"

	"swarmdeck/engine/session"
)

func sessionColumns(c *call) []column[session.Session] {
	return []column[session.Session]{
		{title: "SESSION", text: func(s session.Session) string { return s.SessionID }},
		{title: "NAME", most: 24, text: func(s session.Session) string { return s.Name }},
		{title: "STATE", text: func(s session.Session) string {
			if n := len(s.Pausing); n > 0 {
				return s.Shown() + " (" + strconv.Itoa(n) + ")"
			}
			return s.Shown()
		}},
		{title: "AGE", right: true, text: func(s session.Session) string { return c.age(s.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(s session.Session) string { return stamp(s.CreatedAt) }},
		{title: "UPDATED", wide: true, text: func(s session.Session) string { return stamp(s.UpdatedAt) }},
		{title: "WAITING FOR", wide: true, text: func(s session.Session) string { return strings.Join(s.Pausing, " ") }},
		{title: "REASON", most: 40, text: func(s session.Session) string { return s.Reason }},
	}
}
