package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// The validator works on maps, slices, strings, bools, nil and json.Number.
// Here JSON becomes that, and JSON again.

// plainValue decodes JSON for the validator: numbers keep their digits, and
// none is of a size that arithmetic on it would take long.
func plainValue(raw core.Raw) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	v, err := readPlain(dec)
	if errors.Is(err, io.EOF) {
		err = errors.New("nothing there")
	}
	return v, err
}

func readPlain(dec *jsontext.Decoder) (any, error) {
	switch dec.PeekKind() {
	case '{':
		out := map[string]any{}
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if out[key], err = readPlain(dec); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return out, err
	case '[':
		out := []any{}
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		for dec.PeekKind() != ']' {
			item, err := readPlain(dec)
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		_, err := dec.ReadToken()
		return out, err
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	}
	return number(tok.String())
}

// number is one of a size that exact arithmetic can afford: an exponent of a
// million would cost minutes.
func number(text string) (json.Number, error) {
	const most = 400
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if e, err := strconv.Atoi(exponent); len(text) > most || exponent != "" && (err != nil || e > most || e < -most) {
		return "", core.Errorf(core.InvalidInput, "number %s is not allowed; allowed: at most %d digits, an exponent of -%d to %d", shorten(text, 40), most, most, most)
	}
	return json.Number(text), nil
}

// appendPlain writes a value as compact JSON with sorted names.
func appendPlain(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case json.Number:
		return append(b, v...), nil
	case string:
		return jsontext.AppendQuote(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendPlain(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = jsontext.AppendQuote(b, name); err != nil {
				return nil, err
			}
			if b, err = appendPlain(append(b, ':'), v[name]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("encode %T as JSON", v)
}

// clonePlain copies a value, so that a default is never shared.
func clonePlain(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clonePlain(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = clonePlain(member)
		}
		return out
	}
	return v
}
