package swarmfile

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/operator"
)

// Operator is someone who may enter over SSH.
type Operator struct {
	operator.Operator
	Line int
}

// operator reads a name, a role and public keys.
func (r reader) operator(v value) Operator {
	o := Operator{Line: v.Line()}
	r.Object(v, map[string]func(value){
		"name": func(v value) { o.Name = r.Text(v) },
		"role": func(v value) { o.Role = operator.Role(r.Word(v)) },
		"keys": func(v value) {
			o.Keys = document.Each(r.Reader, v, func(v value) operator.Key {
				k, err := operator.ParseKey(r.Text(v))
				r.Check(v, err)
				return k
			})
		},
	}, "name", "role", "keys")
	if o.Name == "" || len(o.Keys) == 0 {
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
