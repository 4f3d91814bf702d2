package swarmfile

import (
	"swarmdeck/engine/core"
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
		"name": func(v value) { o.Name = r.Text(v) },
		"role": func(v value) { o.Role = operator.Role(r.Word(v)) },
		"uids": func(v value) {
			o.Users = document.Each(r.Reader, v, func(v value) operator.User {
				u, err := operator.ParseUser(r.Text(v))
				r.Check(v, err)
				return u
			})
		},
		"groups": func(v value) { o.Groups = document.Each(r.Reader, v, r.Text) },
		"keys": func(v value) {
			o.Keys = document.Each(r.Reader, v, func(v value) operator.Key {
				k, err := operator.ParseKey(r.Text(v))
				r.Check(v, err)
				return k
			})
		},
	}, "name", "role")
	if o.Name == "" {
		return o
	}
	if err := o.Check(); err != nil {
		at := v
		if field, ok := core.AsError(err).Details["field"].(string); ok && !v.Field(field).Empty() {
			at = v.Field(field)
		}
		r.Check(at, err)
	}
	return o
}
