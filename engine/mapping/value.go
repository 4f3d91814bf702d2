package mapping

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// What mapping needs of JSON values: all of them are read where they stand,
// so that numbers keep their digits.

// Member is the value of an object's member, nil when there is none; names
// are some of those that it has.
func Member(object core.Raw, key string) (value core.Raw, names []string) {
	if object.Kind() != '{' {
		return nil, nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil
	}
	for dec.PeekKind() == '"' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, nil
		}
		name := tok.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, nil
		}
		if name == key {
			return v.Clone(), nil
		}
		if len(names) < 9 {
			names = append(names, document.Clip(name))
		}
	}
	return nil, SomeNames(names)
}

// itemOf is an item of a list, nil when there is none; n is how many it has.
func itemOf(list core.Raw, index int) (value core.Raw, n int) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(list))
	if _, err := dec.ReadToken(); err != nil {
		return nil, 0
	}
	for ; dec.PeekKind() != ']'; n++ {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, n
		}
		if n == index {
			return v.Clone(), n
		}
	}
	return nil, n
}

// asText is a value inside a text: a string as it is, any other as JSON.
func asText(value core.Raw) (string, error) {
	if value.Kind() != '"' {
		return string(value), nil
	}
	b, err := jsontext.AppendUnquote(nil, []byte(value))
	return string(b), err
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	}
	return "null"
}

// Declared are the names of the properties of a schema, none when it declares
// none.
func Declared(schema core.Raw) []string {
	properties, _ := Member(schema, "properties")
	if properties == nil {
		return nil
	}
	var names []string
	_ = EachText(properties, func(dec *jsontext.Decoder, name bool, text string) error {
		if name && dec.StackDepth() == 1 {
			names = append(names, text)
		}
		return nil
	})
	return names
}

// EachText calls visit for every text of a JSON value; name tells a member's
// name from a value.
func EachText(value core.Raw, visit func(dec *jsontext.Decoder, name bool, text string) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	for {
		name := atName(dec)
		tok, err := dec.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if tok.Kind() != '"' {
			continue
		}
		if err := visit(dec, name, tok.String()); err != nil {
			return err
		}
	}
}

// atName reports whether the next text is a member's name.
func atName(dec *jsontext.Decoder) bool {
	kind, n := dec.StackIndex(dec.StackDepth())
	return kind == '{' && n%2 == 0
}

// Place is a place in a document as messages show it: ".list[0].name".
func Place(p jsontext.Pointer) string {
	var b strings.Builder
	for name := range p.Tokens() {
		if name != "" && strings.Trim(name, "0123456789") == "" {
			b.WriteString("[" + name + "]")
		} else {
			b.WriteString("." + document.Clip(name))
		}
	}
	return b.String()
}

// bounded keeps what is written to it up to a size.
type bounded struct {
	data []byte
	left int
}

var errBounded = errors.New("too much")

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errBounded
	}
	b.left -= len(p)
	b.data = append(b.data, p...)
	return len(p), nil
}

func tooLarge(err error) error {
	if errors.Is(err, errBounded) {
		return core.Errorf(core.InvalidInput, "params: larger than %d bytes once the references are filled in", core.MaxInput).With("field", "params")
	}
	return core.Errorf(core.InvalidInput, "params: %v", err).With("field", "params")
}
