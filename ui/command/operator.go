package command

import (
	"strings"

	"swarmdeck/engine/operator"
)

func operatorColumns(c *call) []column[operator.Operator] {
	type O = operator.Operator
	return []column[O]{
		{title: "OPERATOR", text: func(o O) string { return o.Name }},
		{title: "ROLE", text: func(o O) string { return string(o.Role) }},
		{title: "AGE", right: true, text: func(o O) string { return c.age(o.CreatedAt) }},
		{title: "GROUPS", most: 40, text: func(o O) string { return strings.Join(o.Groups, " ") }},
		{title: "PROOFS", most: 60, text: func(o O) string { return o.Person() }},
	}
}
