package fleet

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// Bounds of what a record keeps of texts from outside.
const (
	maxLabel   = 64   // project and role names, in characters
	maxURI     = 2048 // bytes
	maxLast    = 1000 // bytes of Agent.LastTask
	maxReason  = 500  // bytes of a reason or an attention text
	maxIntent  = 300  // bytes of a tool request's intent
	maxTitle   = 120  // bytes of a task's title
	maxCall    = 128  // bytes of a call id or a tool name
	maxOptions = 64 << 10
	maxLine    = 64 << 10
)

var namePattern = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

func checkName(name string) error {
	if !namePattern().MatchString(name) {
		return core.Invalid("name", name, "1-20 of a-z A-Z 0-9 -")
	}
	return nil
}

// checkNewName is checkName, and the name is not one that the message bus
// gives to the engine itself.
func checkNewName(name string) error {
	if slices.Contains(bus.Components(), name) {
		return core.Invalid("name", name, "any but "+strings.Join(bus.Components(), ", ")+", which stand for the engine's own in messages")
	}
	return checkName(name)
}

// checkLabel reports a project or role name that a list could not show.
func checkLabel(field, s string) error {
	n := utf8.RuneCountInString(s)
	if n < 1 || n > maxLabel || !utf8.ValidString(s) || strings.TrimSpace(s) != s || !printable(s) {
		return core.Invalid(field, s, fmt.Sprintf("1-%d printable characters without space around them", maxLabel))
	}
	return nil
}

// checkOptions reports options that are no JSON object, and gives their
// compact form, nil for none. What they mean is the runtime's to check.
func checkOptions(options core.Raw) (core.Raw, error) {
	if len(options) == 0 {
		return nil, nil
	}
	if err := core.CheckObject("options", options, maxOptions); err != nil {
		return nil, err
	}
	compact := core.Raw(bytes.Clone(options))
	if err := compact.Compact(); err != nil {
		return nil, core.Errorf(core.InvalidInput, "options: not valid JSON: %v", err).With("field", "options")
	}
	if string(compact) == "{}" {
		return nil, nil
	}
	return compact, nil
}

func checkMessage(s string) error {
	if strings.TrimSpace(s) == "" {
		return core.Invalid("message", s, "a text that is not only white space")
	}
	if !utf8.ValidString(s) {
		return core.Invalid("message", "invalid UTF-8", "UTF-8 text")
	}
	if len(s) > core.MaxInput {
		return core.Invalid("message", fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("at most %d bytes", core.MaxInput))
	}
	return nil
}

func checkURI(s string) error {
	if len(s) > maxURI || !utf8.ValidString(s) || !printable(s) {
		return core.Invalid("uri", s, fmt.Sprintf("at most %d bytes of printable text", maxURI))
	}
	return nil
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// cut makes s valid UTF-8 of at most n bytes, an ellipsis marking the cut.
func cut(s string, n int) string {
	if len(s) > n {
		const mark = "…"
		s = strings.ToValidUTF8(s[:n-len(mark)], "") + mark
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// oneLine is the first line with text in it, without control characters.
func oneLine(s string, n int) string {
	for line := range strings.Lines(s) {
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
		if line != "" {
			return cut(line, n)
		}
	}
	return ""
}

// stableID is a UUID (RFC 9562 version 8) made of the parts alone, so that the
// same thing keeps its id wherever and whenever it is made.
func stableID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// busy is the seed's AgentBusyError: only an idle agent takes a task.
func busy(a *Agent, why string) error {
	return core.Errorf(core.Conflict, "agent %s %s; only an idle agent takes a task", a.Name, why).
		With("error", "AgentBusyError").With("field", "agent").With("value", a.Name).With("status", string(a.Status))
}

// taken is the seed's AgentAlreadyExistsError.
func taken(name string) error {
	return core.Errorf(core.Conflict, "name: agent %q exists already", name).
		With("error", "AgentAlreadyExistsError").With("field", "name").With("value", name)
}
