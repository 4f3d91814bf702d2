package cad

import (
	"math"
	"time"

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

// withMembers is a JSON object with members set, those that it had replaced.
func withMembers(object core.Raw, members map[string]any) (core.Raw, error) {
	all := map[string]core.Raw{}
	if err := core.Decode(object, &all); err != nil {
		return nil, err
	}
	for name, v := range members {
		all[name] = core.MustEncode(v)
	}
	return core.Encode(all)
}

// Seconds is a time as the model writes it: seconds since 1970 with a fraction,
// good to the microsecond. Zero is no time.
type Seconds float64

func seconds(t time.Time) Seconds {
	if t.IsZero() {
		return 0
	}
	return Seconds(float64(t.UnixMicro()) / 1e6)
}

// Time is the same as a time; the zero Time for none.
func (s Seconds) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(float64(s) * 1e6))).UTC()
}
