package swarmfile

import (
	"swarmdeck/engine/document"
	"swarmdeck/engine/operator"
)

// Operator is a person of the tenant.
type Operator struct {
	operator.Operator
	Line int
}

// operator reads a name, a role, users, public keys and groups.
func (r reader) operator(v value) Operator {
	o := Operator{Line: v.Line()}
	r.Object(v, map[string]func(value){
		"name":   func(v value) { o.Name = r.Text(v) },
		"role":   func(v value) { o.Role = operator.Role(r.Word(v)) },
		"uids":   func(v value) { o.Users = parsed(r, v, operator.ParseUser) },
		"groups": func(v value) { o.Groups = document.Each(r.Reader, v, r.Text) },
		"keys":   func(v value) { o.Keys = parsed(r, v, operator.ParseKey) },
	}, "name", "role")
	if o.Name != "" {
		r.refuse(v, o.Check())
	}
	return o
}

// parsed are texts, each as what it stands for.
func parsed[T any](r reader, v value, parse func(string) (T, error)) []T {
	return document.Each(r.Reader, v, func(v value) T {
		one, err := parse(r.Text(v))
		r.Check(v, err)
		return one
	})
}
