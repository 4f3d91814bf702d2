// Package serpent stands in for the one that reads the options of Coder's
// server. No client calls it.
package serpent

import (
	"net/url"
	"regexp"
	"time"

	"github.com/spf13/pflag"
)

const unused = "serpent: a client has no options"

type (
	Annotations map[string]string
	Group       struct {
		Parent                  *Group
		Name, YAML, Description string
	}
	Option struct {
		Name, Description, Flag, FlagShorthand, Env, YAML, Default string

		Required, Hidden bool
		Value            pflag.Value
		Annotations      Annotations
		Group            *Group
		UseInstead       []Option
	}
	OptionSet []Option
)

func (Annotations) IsSet(key string) bool { panic(unused) }

func (Annotations) Mark(key, value string) Annotations { panic(unused) }

func (*OptionSet) Add(...Option) { panic(unused) }

func (OptionSet) Filter(func(Option) bool) OptionSet { panic(unused) }

// The types of values.
type (
	Bool          bool
	Duration      time.Duration
	Enum          struct{ pflag.Value }
	HostPort      struct{ Host, Port string }
	Int64         int64
	Regexp        regexp.Regexp
	String        string
	StringArray   []string
	Struct[T any] struct {
		Value T
		text
	}
	URL            url.URL
	YAMLConfigPath string

	Validator[T pflag.Value] struct {
		Value T
		text
	}
)

// text has what a generic type can't declare without a body.
type text struct{}

func EnumOf(v *string, choices ...string) *Enum { panic(unused) }

func Validate[T pflag.Value](T, func(T) error) *Validator[T] { panic(unused) }

func (*Bool) Set(string) error { panic(unused) }

func (*Bool) String() string { panic(unused) }

func (*Bool) Type() string { panic(unused) }

func (*Bool) Value() bool { panic(unused) }

func (*Duration) Set(string) error { panic(unused) }

func (*Duration) String() string { panic(unused) }

func (*Duration) Type() string { panic(unused) }

func (*Duration) Value() time.Duration { panic(unused) }

func (*HostPort) Set(string) error { panic(unused) }

func (*HostPort) String() string { panic(unused) }

func (*HostPort) Type() string { panic(unused) }

func (*Int64) Set(string) error { panic(unused) }

func (*Int64) String() string { panic(unused) }

func (*Int64) Type() string { panic(unused) }

func (*Int64) Value() int64 { panic(unused) }

func (*Regexp) Set(string) error { panic(unused) }

func (*Regexp) String() string { panic(unused) }

func (*Regexp) Type() string { panic(unused) }

func (*Regexp) Value() *regexp.Regexp { panic(unused) }

func (*String) Set(string) error { panic(unused) }

func (*String) String() string { panic(unused) }

func (*String) Type() string { panic(unused) }

func (*String) Value() string { panic(unused) }

func (*StringArray) Set(string) error { panic(unused) }

func (*StringArray) String() string { panic(unused) }

func (*StringArray) Type() string { panic(unused) }

func (*StringArray) Value() []string { panic(unused) }

func (*URL) Set(string) error { panic(unused) }

func (*URL) String() string { panic(unused) }

func (*URL) Type() string { panic(unused) }

func (*URL) Value() *url.URL { panic(unused) }

func (*YAMLConfigPath) Set(string) error { panic(unused) }

func (*YAMLConfigPath) String() string { panic(unused) }

func (*YAMLConfigPath) Type() string { panic(unused) }

func (*text) Set(string) error { panic(unused) }

func (*text) String() string { panic(unused) }

func (*text) Type() string { panic(unused) }
