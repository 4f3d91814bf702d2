package core

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is a JSON value kept as its bytes.
type Raw = jsontext.Value

// MaxInput is the largest input of a task: 1 MiB (requirement 1.3).
const MaxInput = 1 << 20

// MaxDepth bounds the nesting of JSON from outside.
const MaxDepth = 128

// Encode writes v as compact JSON with sorted map keys.
func Encode(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

// MustEncode is Encode for values that always can be encoded (our own records).
func MustEncode(v any) Raw {
	b, err := Encode(v)
	if err != nil {
		panic(fmt.Sprintf("core: encode %T: %v", v, err))
	}
	return b
}

// Decode reads exactly one JSON value into v. Unknown and duplicate members,
// trailing data and invalid UTF-8 are refused, the field named.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return decodeError(err)
	}
	return nil
}

// DecodeStored reads a record of our own. Members of a newer version are
// ignored rather than refused.
func DecodeStored(data []byte, v any) error { return json.Unmarshal(data, v) }

func decodeError(err error) error {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		field := dotted(sem.JSONPointer)
		if errors.Is(err, json.ErrUnknownName) {
			return Errorf(InvalidInput, "%s: unknown field", field).With("field", field)
		}
		want := "another value"
		if sem.GoType != nil {
			want = jsonWords(sem.GoType)
		}
		got := kindWords(sem.JSONKind)
		var clock *time.ParseError
		if errors.As(sem.Err, &clock) {
			return Invalid(field, clock.Value, "a time such as 2026-01-02T15:04:05Z")
		}
		if got == want && sem.Err != nil { // of the right kind, and no such value
			return Errorf(InvalidInput, "%s: %v", field, sem.Err).With("field", field)
		}
		return Errorf(InvalidInput, "%s: want %s, got %s", field, want, got).With("field", field)
	}
	return Errorf(InvalidInput, "not valid JSON: %v", err)
}

// CheckObject reports data that is not exactly one JSON object of at most max
// bytes, or that nests too deeply.
func CheckObject(field string, data []byte, max int) error {
	if len(data) > max {
		return Invalid(field, fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("at most %d bytes", max))
	}
	if Depth(data) > MaxDepth {
		return Errorf(InvalidInput, "%s: nested deeper than %d", field, MaxDepth).With("field", field)
	}
	value := Raw(data)
	if !value.IsValid() {
		err := errors.New("nothing there")
		if len(bytes.TrimSpace(data)) > 0 {
			var v any
			err = json.Unmarshal(data, &v) // says where
		}
		return Errorf(InvalidInput, "%s: not valid JSON: %v", field, err).With("field", field)
	}
	if value.Kind() != '{' {
		return Errorf(InvalidInput, "%s: want a JSON object", field).With("field", field)
	}
	return nil
}

// Depth is the deepest nesting of a JSON text.
func Depth(data []byte) (deepest int) {
	now := 0
	for i := 0; i < len(data); {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			continue
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
		i++
	}
	return deepest
}

// Canonical returns the RFC 8785 form of a JSON value, with one difference: an
// integer from 2^53 on, which RFC 8785 would round, keeps its digits as they are.
// Any other number that a float64 can't carry is refused: two different documents
// never share one digest. What has that form already is returned as it is.
func Canonical(data []byte) (Raw, error) {
	if isCanonical(data) {
		return data, nil
	}
	if err := eachNumber(data, checkNumber); err != nil {
		return nil, err
	}
	out := Raw(bytes.Clone(data))
	if err := out.Canonicalize(jsontext.CanonicalizeRawInts(!hasLarge(data))); err != nil {
		return nil, Errorf(InvalidInput, "not valid JSON: %v", err)
	}
	return out, nil
}

// Digest is the lower-case hex sha256 over the canonical JSON of v.
func Digest(v any) (string, error) {
	data, err := Encode(v)
	if err != nil {
		return "", fmt.Errorf("encode for digest: %w", err)
	}
	canon, err := Canonical(data)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canon)
	return hex.EncodeToString(sum[:]), nil
}

// eachNumber checks every number of a JSON text, and skips its strings.
func eachNumber(data []byte, check func(string) error) error {
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			i = skipString(data, i)
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(data) && strings.IndexByte("+-.0123456789eE", data[end]) >= 0 {
				end++
			}
			if err := check(string(data[i:end])); err != nil {
				return inMember(data, end, err)
			}
			i = end
		default:
			i++
		}
	}
	return nil
}

// inMember names the member before what is wrong with its value, which ends at an
// offset of a JSON text.
func inMember(data []byte, end int, err error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	for dec.InputOffset() < int64(end) {
		if _, bad := dec.ReadToken(); bad != nil {
			return err
		}
	}
	field := dotted(dec.StackPointer())
	if field == "" {
		return err
	}
	return Errorf(InvalidInput, "%s: %v", field, err).With("field", field)
}

// dotted is the name of a member within a document: args.path.
func dotted(at jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(at), "/"), "/", ".")
}

// skipString returns the index after the string that begins at i.
func skipString(data []byte, i int) int {
	end := i
	for i++; i < len(data); {
		if end < i {
			next := bytes.IndexByte(data[i:], '"')
			if next < 0 {
				break
			}
			end = i + next
		}
		escape := bytes.IndexByte(data[i:end], '\\')
		if escape < 0 {
			return end + 1
		}
		i += escape + 2 // the next byte belongs to it
	}
	return len(data)
}

func checkNumber(text string) error {
	if isLarge(text) {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if math.IsInf(f, 0) {
		return Errorf(InvalidInput, "number %s: too large for a JSON number; carry it as a string", Clip(text))
	}
	if err != nil {
		return Errorf(InvalidInput, "not valid JSON: number %s", Clip(text))
	}
	if f == math.Trunc(f) && math.Abs(f) >= 1<<53 {
		return Errorf(InvalidInput, "number %s: integers from 2^53 on lose digits in this form; write out the digits, or carry it as a string", Clip(text))
	}
	return nil
}

// jsonWords names what a Go type takes in JSON.
func jsonWords(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of 0 or more"
	}
	return "another value"
}

// kindWords names what a JSON value is.
func kindWords(k jsontext.Kind) string {
	switch k {
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindTrue, jsontext.KindFalse, jsontext.KindNull:
		return k.String()
	}
	return "something else"
}
