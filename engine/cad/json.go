package cad

import (
	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
)

// memberOf is a member of a JSON object; nil when there is none.
func memberOf(object core.Raw, name string) core.Raw {
	value, _ := mapping.Member(object, name)
	return value
}

func hasMember(object core.Raw, name string) bool { return memberOf(object, name) != nil }

// textOf is a member that is a text; "" for any other.
func textOf(object core.Raw, name string) string {
	value := memberOf(object, name)
	if value.Kind() != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// withMembers is a JSON object with members set, in order, those that it had
// replaced.
func withMembers(object core.Raw, names []string, values []core.Raw) (core.Raw, error) {
	var all map[string]core.Raw
	if err := core.Decode(object, &all); err != nil {
		return nil, err
	}
	if all == nil {
		all = map[string]core.Raw{}
	}
	for i, name := range names {
		all[name] = values[i]
	}
	return core.Encode(all)
}
