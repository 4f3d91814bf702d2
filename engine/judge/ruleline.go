package judge

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge/effect"
)

// An always rule is one line that a person reads before they give it, and it matches
// what the line says and nothing else: the action with its arguments by place, where and
// by whom. A place that may hold anything is named in Any, and is a * in the line.
//
// A place is the way to an argument: path, input.path, argv.2; argv.2+ is that word and
// all after it, * all arguments, files what the files hold that a command only works on.
// A name that is no plain word stands in quotes.
const (
	placeAll   = "*"
	placeFiles = "files"
)

// Bounds of a rule's line.
const (
	maxAny   = 16
	maxPlace = 128
	maxFiles = 2   // that are named
	maxValue = 160 // bytes of one value; what is longer is named by its sha256
	maxLine  = 600 // bytes of all arguments; as above
)

// under is the place of a member or an element of what stands at a place.
func under(place, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		name = strconv.Quote(name)
	}
	if place == "" {
		return name
	}
	return place + "." + name
}

// calledWith is where the arguments of a call stand among those of an action of a kind.
var calledWith = map[string]string{KindTool: "", KindMCP: "args", KindSkill: "params"}

// free reports whether a place may hold anything.
func (r *Rule) free(place string) bool {
	if slices.Contains(r.Any, place) {
		return true
	}
	all, called := calledWith[r.Action.Kind]
	return called && place == all && slices.Contains(r.Any, placeAll)
}

// aside reports a place that says nothing of what is done: of a connection, whose tool
// is where it goes to, the words of its process; of a skill, whose run it is, and
// parameters once more.
func (r *Rule) aside(place string) bool {
	switch r.Action.Kind {
	case KindNet:
		return true
	case KindSkill:
		return place == "agent_id" || place == "step" || strings.HasPrefix(place, "plan.") && strings.HasSuffix(place, ".params")
	}
	return false
}

// same reports whether a value at a place is what the rule has there.
func (r *Rule) same(place string, was, is any) bool {
	switch {
	case r.aside(place):
		return true
	case r.free(place):
		return !holdsCommand(is)
	}
	switch was := was.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			return false
		}
		for name := range is {
			if _, had := was[name]; !had && !r.same(under(place, name), absent{}, is[name]) {
				return false
			}
		}
		for name, value := range was {
			now, has := is[name]
			if !has {
				now = absent{}
			}
			if !r.same(under(place, name), value, now) {
				return false
			}
		}
		return true
	case []any:
		is, ok := is.([]any)
		if !ok {
			return false
		}
		for i := range max(len(was), len(is)) {
			at := under(place, strconv.Itoa(i))
			if slices.Contains(r.Any, at+"+") {
				return true
			}
			if i >= len(was) || i >= len(is) || !r.same(at, was[i], is[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(was, is)
}

// absent is the value of what is not there.
type absent struct{}

// holdsCommand reports whether a value has a command line in it: none is "anything".
func holdsCommand(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, holdsCommand)
	case map[string]any:
		for name, value := range v {
			if slices.Contains(effect.CommandKeys, name) || holdsCommand(value) {
				return true
			}
		}
	}
	return false
}

// covers reports whether the rule is about this ask.
func (r *Rule) covers(ask *Ask) bool {
	a := &ask.Action
	if r.Gate != ask.Gate || r.Action.Kind != a.Kind || r.Action.Server != a.Server {
		return false
	}
	known := r.Action.calls()
	if slices.ContainsFunc(a.calls(), func(what string) bool { return !slices.Contains(known, what) }) {
		return false
	}
	for _, effect := range a.Effects { // a skill that learnt to do more is another one
		if a.Kind != KindMCP && !slices.Contains(r.Action.Effects, effect) {
			return false
		}
	}
	if r.Agent != "" && r.Agent != ask.actor() || r.Project != "" && r.Project != ask.Agent.Project ||
		r.Session != "" && r.Session != ask.Session || r.Run != "" && r.Run != runOf(ask.TaskID, ask.Attempt) {
		return false
	}
	was, is := values(r.Action.Args), values(a.Args)
	return was != nil && is != nil && r.same("", was, is) && SameFiles(r.held(r.Action.Files), r.held(a.Files))
}

// held are the files that must be as they were, whatever they are to the command: with files
// in Any those that run alone. What a server says of its tool is held by the digest among the
// arguments.
func (r *Rule) held(files []File) []File {
	if r.Action.Kind == KindMCP {
		return nil
	}
	files = slices.Clone(files)
	if slices.Contains(r.Any, placeFiles) {
		files = slices.DeleteFunc(files, func(f File) bool { return !f.Runs })
	}
	for i := range files {
		files[i].Runs = false
	}
	return files
}

// values are arguments as they are compared; nil where they have no canonical form.
func values(args core.Raw) any {
	canon, err := canonicalArgs(args)
	if err != nil {
		return nil
	}
	v, err := core.Values(canon)
	if err != nil {
		return nil
	}
	return v
}

// widens refuses places that may not hold anything: what the arguments don't have, the
// text of a command, and of a command anything but words after its program.
func widens(c *effect.Classifier, a *Action, places []string) error {
	all, called := calledWith[a.Kind]
	for _, place := range places {
		refuse := func(why string) error {
			return core.Errorf(core.InvalidInput, "any: %q %s", core.Clip(place), why).With("field", "any").With("value", core.Clip(place))
		}
		parts := strings.Split(strings.TrimSuffix(place, "+"), ".")
		switch last := parts[len(parts)-1]; {
		case place == placeFiles:
			continue
		case a.Kind == KindExec:
			n, err := strconv.Atoi(last)
			if len(parts) != 2 || parts[0] != "argv" || err != nil || n < 1 {
				return refuse("may not be any: of a command only words after its program, such as argv.2 or argv.2+, and files")
			}
			if name := path0(program(a)); c.Runs(name) {
				return refuse("may not be any: " + name + " runs what its words say")
			}
		case a.Kind == "agent.prompt" && place == "message":
		case !called:
			return refuse("may not be any: an action of kind " + a.Kind + " is approved as it is")
		case slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(effect.CommandKeys, p) }):
			return refuse("may not be any: it is what runs")
		case all != "" && parts[0] != all && place != placeAll:
			return refuse("may not be any: only what is below " + all)
		}
		if place != placeAll && !has(values(a.Args), "", place) {
			return refuse("is no place in the arguments, such as path, input.path, argv.2, argv.2+")
		}
	}
	return nil
}

func path0(program string) string { return program[strings.LastIndexByte(program, '/')+1:] }

// has reports whether there is such a place.
func has(v any, at, place string) bool {
	if at == place {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if has(value, under(at, name), place) {
				return true
			}
		}
	case []any:
		for i := range len(v) + 1 { // and what may follow
			each := under(at, strconv.Itoa(i))
			if each+"+" == place || i < len(v) && has(v[i], each, place) {
				return true
			}
		}
	}
	return false
}

// String is the line: who may do what, where, how often and until when.
func (r *Rule) String() string {
	if r.Digest == "" && !r.CreatedAt.IsZero() {
		return "made in an older form, and allows nothing any more"
	}
	who := "anyone"
	switch {
	case r.Agent != "":
		who = "agent " + word(r.Agent)
	case r.Project != "":
		who = "agents of project " + word(r.Project)
	}
	if r.Session != "" {
		who += " in session " + word(r.Session)
	}
	if task, attempt, ok := strings.Cut(r.Run, "/"); ok {
		n, _ := strconv.Atoi(attempt)
		who += fmt.Sprintf(" in attempt %d of task %s", n+1, task)
	}
	times := strconv.Itoa(r.MaxUses) + " times"
	if r.MaxUses == 1 {
		times = "1 time"
	}
	lasts := "until " + r.ExpiresAt.UTC().Format("2006-01-02 15:04:05") + " UTC"
	if r.CreatedAt.IsZero() {
		lasts = "within " + span(r.ExpiresAt.Sub(time.Time{})) + " of the approval"
	}
	return fmt.Sprintf("let %s %s up to %s %s", who, r.what(), times, lasts)
}

// span is a duration without zeros at its end: 1h for 1h0m0s.
func span(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ long, short string }{{"m0s", "m"}, {"h0m", "h"}} {
		if strings.HasSuffix(text, zero.long) {
			text = strings.TrimSuffix(text, zero.long) + zero.short
		}
	}
	return text
}

// what says the action with its arguments.
func (r *Rule) what() string {
	args, _ := values(r.Action.Args).(map[string]any)
	place, called, held, out := "", word(joined("/", r.Action.Server, r.Action.Tool)), "", ""
	switch r.Action.Kind {
	case KindNet:
		hosts := r.Action.calls()
		for i := range hosts {
			hosts[i] = word(hosts[i])
		}
		return "connect to " + strings.Join(hosts, ", ")
	case KindExec:
		words, _ := args["argv"].([]any)
		out = "run `" + r.list("argv", words, " ", r.word) + "`" + of(word(asText(args["dir"])), " in ")
		if delete(args, "argv"); args["dir"] != "" {
			delete(args, "dir")
		}
	case KindMCP:
		out, place, held = "call "+called, calledWith[KindMCP], ", as its server describes it now"
		args = nested(args, place)
	case KindTool:
		out = "call " + called
	case KindSkill:
		out, place, held = "run skill "+called, calledWith[KindSkill], ", as it is now"
		args = nested(args, place)
	default:
		out = strings.TrimSpace("do " + word(r.Action.Kind) + " " + called)
	}
	out += r.with(place, args) + held
	files := r.held(r.Action.Files)
	if len(files) > maxFiles {
		out += fmt.Sprintf(" with %d files as they are now (sha256 %s)", len(files), FilesDigest(files))
		files = nil
	}
	for _, f := range files {
		now := " as it is now (sha256 " + f.SHA256 + ")"
		if f.isNew() {
			now = ", which is new"
		}
		out += " with " + word(f.Path) + cmp.Or(of(f.Unbound, ", which is not bound: "), now)
	}
	if slices.Contains(r.Any, placeFiles) {
		out += ", whatever the files hold that it only works on,"
	}
	return out
}

// with writes arguments, by name.
func (r *Rule) with(place string, args map[string]any) string {
	if r.free(place) {
		return " with any arguments"
	}
	parts := r.members(place, args)
	switch {
	case len(parts) > 0:
	case r.Action.Kind == KindExec:
		return ""
	default:
		return " without arguments"
	}
	text := strings.Join(parts, ", ")
	if len(text) > maxLine {
		text = fmt.Sprintf("exactly the arguments that %s shows, which are %d bytes with the sha256 %s", cmp.Or(r.ApprovalID, "this"), len(r.Action.Args), core.SHA256(string(r.Action.Args)))
		if len(r.Any) > 0 {
			text += ", but any " + strings.Join(r.Any, ", ")
		}
	}
	return " with " + text
}

func (r *Rule) members(place string, in map[string]any) []string {
	return core.Map(slices.Sorted(maps.Keys(in)), func(name string) string {
		return word(name) + "=" + r.value(under(place, name), in[name])
	})
}

// value writes one argument as JSON would have it, so that nothing passes for anything else.
func (r *Rule) value(place string, v any) string {
	if r.free(place) {
		return placeAll
	}
	switch v := v.(type) {
	case map[string]any:
		return "{" + strings.Join(r.members(place, v), ", ") + "}"
	case []any:
		return "[" + r.list(place, v, ", ", r.value) + "]"
	case core.Digits:
		return string(v)
	case string:
		if len(v) > maxValue {
			return fmt.Sprintf("%s…(%d bytes, sha256 %s)", strconv.Quote(core.ClipTo(v, maxValue/2)), len(v), core.SHA256(v))
		}
		return strconv.Quote(v)
	}
	return string(core.MustEncode(v))
}

// word writes a word of a command line.
func (r *Rule) word(at string, v any) string {
	if s := asText(v); s != "" && strings.IndexFunc(s, func(c rune) bool { return !plainWord(c) }) < 0 && !r.free(at) {
		return s
	}
	return r.value(at, v)
}

// list writes values in their order: * is any one, ** any that follow.
func (r *Rule) list(place string, of []any, between string, write func(string, any) string) string {
	var parts []string
	for i := range len(of) + 1 {
		at := under(place, strconv.Itoa(i))
		if slices.Contains(r.Any, at+"+") {
			parts = append(parts, "**")
			break
		}
		if i < len(of) {
			parts = append(parts, write(at, of[i]))
		}
	}
	return strings.Join(parts, between)
}

// word is a name within a sentence: one that could pass for more of the sentence
// stands in quotes.
func word(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"`,=*", r)
	}) {
		return strconv.Quote(s)
	}
	return s
}
