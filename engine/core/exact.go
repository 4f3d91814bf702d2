package core

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckExact refuses JSON with a number that RFC 8785 writes as another one: an
// integer from 2^53 on, more digits than a float64 has, or too small for it. It is
// for documents whose digest others work out too.
func CheckExact(data []byte) error {
	return eachNumber(data, func(text string) error {
		if len(text) <= 15 && !strings.ContainsAny(text, "eE") {
			return nil // 15 digits always survive
		}
		if isLarge(text) {
			return Errorf(InvalidInput, "number %s: integers from 2^53 on lose digits; carry it as a string", Clip(text))
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return checkNumber(text)
		}
		if digits, exp := decimal(text); digits != "" {
			if d, x := decimal(strconv.FormatFloat(f, 'e', -1, 64)); d != digits || x != exp {
				return Errorf(InvalidInput, "number %s: loses digits as a JSON number; carry it as a string", Clip(text))
			}
		}
		return nil
	})
}

// isLarge reports an integer in plain digits that a float64 may round.
func isLarge(text string) bool {
	if len(text) <= 15 || strings.ContainsAny(text, ".eE") {
		return false
	}
	f, err := strconv.ParseFloat(text, 64)
	return err != nil || math.Abs(f) >= 1<<53
}

// hasLarge reports JSON with such an integer.
func hasLarge(data []byte) (large bool) {
	_ = eachNumber(data, func(text string) error {
		large = large || isLarge(text)
		return nil
	})
	return large
}

// Digits is an integer that a float64 may round, as it is written.
type Digits string

// Values decodes a JSON value as json.Unmarshal does into an any, but an integer
// from 2^53 on as Digits.
func Values(data []byte) (v any, err error) {
	if !hasLarge(data) {
		err = json.Unmarshal(data, &v)
		return v, err
	}
	return v, json.Unmarshal(data, &v, eachLarge(func(text string) any { return Digits(text) }))
}

// QuoteLarge is a JSON value with its integers from 2^53 on as strings, the way
// that RFC 8785, appendix D, carries them.
func QuoteLarge(data Raw) Raw {
	if !hasLarge(data) {
		return data
	}
	var v any
	if json.Unmarshal(data, &v, eachLarge(func(text string) any { return text })) != nil {
		return data
	}
	return MustEncode(v)
}

// eachLarge decodes integers that a float64 may round in a way of its own.
func eachLarge(as func(text string) any) json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, to *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		text, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("read a number: %w", err)
		}
		if isLarge(string(text)) {
			*to = as(string(text))
			return nil
		}
		*to, err = strconv.ParseFloat(string(text), 64)
		return err
	}))
}

// decimal is a number's digits without zeros around them, and the power of ten
// of the last one; "" for zero.
func decimal(text string) (digits string, exp int) {
	text = strings.TrimPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp, _ = strconv.Atoi(text[i+1:]) // out of range means a number that ParseFloat made 0 or refused
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits = strings.TrimRight(all, "0")
	return digits, exp - len(fraction) + len(all) - len(digits)
}
