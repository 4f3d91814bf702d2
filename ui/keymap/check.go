package keymap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/ui/term"
)

// Vocabulary is what a keymap may speak of. A nil list or function allows
// everything.
type Vocabulary struct {
	Scopes  []string
	Actions []string
	Line    func(line string) error // refuses a command line
}

func (v Vocabulary) scope(scope string) error {
	if scope == "" {
		return errors.New("scope is missing")
	}
	if v.Scopes != nil && !slices.Contains(v.Scopes, scope) {
		return fmt.Errorf("scope %q is unknown; one of %s", term.Cut(scope, 60), strings.Join(v.Scopes, " "))
	}
	return nil
}

func (v Vocabulary) check(b *Binding) error {
	for _, f := range [][2]string{{"scope", b.Scope}, {"action", b.Action}, {"help", b.Help}, {"hint", b.Hint}} {
		if len(f[1]) > maxText || f[1] != term.Clean(f[1]) {
			return fmt.Errorf("%s %q: at most %d bytes of printable text", f[0], term.Cut(f[1], 60), maxText)
		}
	}
	if err := v.scope(b.Scope); err != nil {
		return err
	}
	switch {
	case b.Line == "" && b.Action == "":
		return errors.New("line or action is missing")
	case b.Line != "" && b.Action != "":
		return errors.New("line and action both given; use one")
	case len(b.Line) > maxLine || term.Suspicious(b.Line):
		return fmt.Errorf("line %q: at most %d bytes of printable text", term.Cut(b.Line, 60), maxLine)
	case b.Help == "":
		return errors.New("help is missing")
	case b.Action != "" && (b.Fill || b.Bulk || b.Confirm != ConfirmAuto):
		return errors.New("fill, bulk and confirm belong to a line, not to an action")
	case b.Action != "" && v.Actions != nil && !slices.Contains(v.Actions, b.Action):
		return fmt.Errorf("action %q is unknown; one of %s", term.Cut(b.Action, 60), strings.Join(v.Actions, " "))
	}
	switch b.Confirm {
	case ConfirmAuto, ConfirmNone, ConfirmAsk, ConfirmType:
	default:
		return fmt.Errorf("confirm %q is unknown; one of none confirm type", term.Cut(string(b.Confirm), 60))
	}
	if b.Line != "" {
		if err := braces(b.Line); err != nil {
			return err
		}
		if v.Line != nil && !b.Fill {
			if err := v.Line(b.Line); err != nil {
				return fmt.Errorf("line %q: %w", term.Cut(b.Line, 60), err)
			}
		}
	}
	return nil
}

// braces refuses a placeholder that isn't closed or has no name.
func braces(line string) error {
	for rest := line; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return nil
		}
		name, tail, ok := strings.Cut(after, "}")
		if !ok || strings.Trim(name, "?! ") == "" || strings.Contains(name, "{") {
			return fmt.Errorf("line %q: a placeholder is {name} or {?Question}", term.Cut(line, 60))
		}
		rest = tail
	}
}
