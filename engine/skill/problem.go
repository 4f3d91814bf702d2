package skill

import (
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// problemOf is an error that names its field, at that field's place.
func problemOf(root document.Value, err error) document.Problem {
	e := core.AsError(err)
	field, _ := e.Details["field"].(string)
	p := document.Problem{
		Line: root.Find(tokens(field)...).Line(), Field: joined(root.Path(), field),
		Message: strings.TrimPrefix(e.Message, field+": "),
	}
	p.Value, _ = e.Details["value"].(string)
	p.Allowed, _ = e.Details["allowed"].(string)
	return p
}

// tokens are the steps of a field's path: runner.steps[0].params.
func tokens(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

func joined(path, field string) string {
	switch {
	case field == "" && path == "":
		return "file"
	case field == "":
		return path
	case path == "":
		return field
	}
	return path + "." + field
}
