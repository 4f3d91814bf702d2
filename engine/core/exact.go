package core

import (
	"strconv"
	"strings"
)

// CheckExact refuses JSON with a number that RFC 8785 writes as another one:
// more digits than a float64 has, or too small for it. Canonical alone rounds
// those; where two documents must never share one digest, ask here first.
func CheckExact(data []byte) error {
	return eachNumber(data, func(text string) error {
		if len(text) <= 15 && !strings.ContainsAny(text, "eE") {
			return nil // 15 digits always survive
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
