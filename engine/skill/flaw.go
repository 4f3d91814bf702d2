package skill

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"swarmdeck/engine/core"
)

// maxFlaws bounds what one report says.
const maxFlaws = 20

// flawsOf tells in plain words what a validator found: each mistake at its
// place, once.
func flawsOf(err *jsonschema.ValidationError) []flaw {
	var found []flaw
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf:
			found = append(found, flaw{e.InstanceLocation, alternatives(e)})
			return
		}
		if len(e.Causes) == 0 {
			found = append(found, leaf(e)...)
			return
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(err)
	slices.SortStableFunc(found, func(a, b flaw) int { return slices.Compare(a.path, b.path) })
	found = slices.CompactFunc(found, func(a, b flaw) bool { return slices.Equal(a.path, b.path) && a.message == b.message })
	if len(found) > maxFlaws {
		found = append(found[:maxFlaws], flaw{message: fmt.Sprintf("%d more mistakes", len(found)-maxFlaws)})
	}
	return found
}

// alternatives tells why none of several schemas fits, or too many do.
func alternatives(e *jsonschema.ValidationError) string {
	if k, ok := e.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 0 {
		return "fits more than one of the alternatives of which one is allowed"
	}
	var reasons []string
	for _, c := range e.Causes {
		for _, f := range flawsOf(c) {
			text := f.message
			if below := f.path[min(len(e.InstanceLocation), len(f.path)):]; len(below) > 0 {
				text = fieldPath("", below) + ": " + text
			}
			if !slices.Contains(reasons, text) {
				reasons = append(reasons, text)
			}
		}
	}
	return "fits none of the alternatives: " + shorten(strings.Join(reasons, "; or "), 400)
}

func leaf(e *jsonschema.ValidationError) []flaw {
	below := func(names []string, message string) (all []flaw) {
		for _, name := range names {
			all = append(all, flaw{append(slices.Clone(e.InstanceLocation), name), message})
		}
		return all
	}
	bad := func(given, allowed string) []flaw {
		return []flaw{{e.InstanceLocation, fmt.Sprintf("%s is not allowed; allowed: %s", shorten(given, 80), allowed)}}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return below(k.Missing, "missing")
	case *kind.DependentRequired:
		return below(k.Missing, "missing; "+k.Prop+" needs it")
	case *kind.Dependency:
		return below(k.Missing, "missing; "+k.Prop+" needs it")
	case *kind.AdditionalProperties:
		return below(k.Properties, "unknown field")
	case *kind.Type:
		return []flaw{{e.InstanceLocation, "want " + strings.Join(k.Want, " or ") + ", got " + k.Got}}
	case *kind.Enum:
		return bad(shown(k.Got), shownAll(k.Want))
	case *kind.Const:
		return bad(shown(k.Got), shown(k.Want))
	case *kind.Minimum:
		return bad(ratio(k.Got), ratio(k.Want)+" or more")
	case *kind.Maximum:
		return bad(ratio(k.Got), ratio(k.Want)+" or less")
	case *kind.ExclusiveMinimum:
		return bad(ratio(k.Got), "more than "+ratio(k.Want))
	case *kind.ExclusiveMaximum:
		return bad(ratio(k.Got), "less than "+ratio(k.Want))
	case *kind.MultipleOf:
		return bad(ratio(k.Got), "a multiple of "+ratio(k.Want))
	case *kind.MinLength:
		return bad(fmt.Sprintf("%d characters", k.Got), fmt.Sprintf("%d or more", k.Want))
	case *kind.MaxLength:
		return bad(fmt.Sprintf("%d characters", k.Got), fmt.Sprintf("%d or less", k.Want))
	case *kind.Pattern:
		return bad(strconv.Quote(shorten(k.Got, 80)), "text that matches "+shorten(k.Want, 120))
	case *kind.FalseSchema:
		return []flaw{{e.InstanceLocation, "not allowed here"}}
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return []flaw{{e.InstanceLocation, shorten(text, 200)}}
}

func shown(v any) string {
	b, err := appendPlain(nil, v)
	if err != nil {
		return shorten(fmt.Sprint(v), 80)
	}
	return shorten(string(b), 80)
}

func shownAll(all []any) string {
	texts := make([]string, 0, len(all))
	for _, v := range all {
		texts = append(texts, shown(v))
	}
	return shorten(strings.Join(texts, ", "), 400)
}

func ratio(r *big.Rat) string {
	if r == nil {
		return "?"
	}
	if r.IsInt() {
		return shorten(r.Num().String(), 80)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// fieldPath writes the tokens of a JSON pointer the way fields are named:
// params.items[0].name.
func fieldPath(root string, tokens []string) string {
	path := root
	for _, t := range tokens {
		switch _, err := strconv.ParseUint(t, 10, 31); {
		case err == nil:
			path += "[" + t + "]"
		case path == "":
			path = shorten(t, 80)
		default:
			path += "." + shorten(t, 80)
		}
	}
	return path
}

// mistakes is the error that names every flaw of a value, nil for none.
func mistakes(root string, flaws []flaw) error {
	if len(flaws) == 0 {
		return nil
	}
	type mistake struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	}
	all := make([]mistake, len(flaws))
	lines := make([]string, len(flaws))
	for i, f := range flaws {
		all[i] = mistake{fieldPath(root, f.path), f.message}
		lines[i] = all[i].Field + ": " + all[i].Message
	}
	return core.Errorf(core.InvalidInput, "%s", strings.Join(lines, "\n")).
		With("field", all[0].Field).With("problems", all)
}
