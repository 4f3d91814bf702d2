package judge

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge/effect"
)

// Bounds of a subject.
const (
	maxHeadline = 240 // bytes
	maxPulled   = 16  // of each kind that is pulled out
	maxPart     = 256 // bytes of one
	maxDepth    = 8   // of arguments that are looked into
)

// Subject is what an action is about, as the engine reads it in the arguments.
// Whoever asks does not word it.
type Subject struct {
	Headline   string   `json:"headline"`             // one line: what would be done, to what
	Effects    []string `json:"effects,omitempty"`    // what it does, by the policy's classes; none is unknown
	Paths      []string `json:"paths,omitempty"`      // files and directories
	Hosts      []string `json:"hosts,omitempty"`      // with a port where one is named
	Recipients []string `json:"recipients,omitempty"` // addresses, channels, numbers
	Amounts    []string `json:"amounts,omitempty"`    // "amount 820000 USD"
	Reversible string   `json:"reversible"`           // yes, partly, no, unknown
	Undo       string   `json:"undo"`                 // how, or why it can't be
}

// Subject reads what an action is about.
func (j *policies) Subject(tenant string, gate Gate, a *Action, agent *AgentRef) Subject {
	table := j.table()
	if r, _ := j.rulings.get(tenant); r != nil {
		table = r.table
	}
	does := *a
	if gate == GateGrant { // what it would let pass
		if g, err := parseGrant(a.Args); err == nil {
			does = g.action()
		}
	}
	var s Subject
	if gate != GateQuestion {
		s.Effects = table.does(&does)
	} else if call, ok := a.called(); ok {
		s.Effects = table.does(&call)
	}
	values, _ := core.Values(a.Args)
	args, ok := values.(map[string]any)
	if ok {
		in := args
		switch a.Kind { // beside it stands how it is carried out
		case KindSkill:
			in = nested(args, "params")
		case KindMCP, KindGrant:
			in = nested(args, "args")
		}
		s.pull("", in, in, 0)
	}
	for _, f := range a.Files {
		if f.Unbound == "" && a.Kind != KindMCP {
			add(&s.Paths, f.Path)
		}
	}
	s.Headline = core.ClipTo(oneLine(s.headline(gate, a, agent, args)), maxHeadline)
	s.Reversible, s.Undo = undo(gate, a, s.Effects)
	return s
}

// oneLine keeps a text on one line without changing what it says.
func oneLine(text string) string {
	return strings.NewReplacer("\r", `\r`, "\n", `\n`, "\t", `\t`).Replace(text)
}

// headline is one sentence without its subject: "run rm -rf build in /work".
func (s *Subject) headline(gate Gate, a *Action, agent *AgentRef, args map[string]any) string {
	word := func(name string) string { v, _ := args[name].(string); return v }
	switch gate {
	case GateNet:
		return "connect to " + strings.Join(a.calls(), ", ") + of(agent.Name, " for ") // the process chose its own name
	case GateBudget:
		return fmt.Sprintf("grant the %s budget of %s once more", word("limit"), word("subject"))
	case GateAgent:
		return "delete agent " + word("agent")
	case GateResult:
		return "commit the result of a task of kind " + a.Kind + of(agent.Name, " by ")
	case GateIntent:
		return a.Tool + of(word("subject"), " of ")
	case GateGrant:
		return grantWords(a.Args)
	case GateQuestion:
		headline := "answer " + asker(a, agent) + "'s question"
		if call, ok := a.called(); ok {
			headline += " about " + call.Tool + s.object(nested(args, "call"))
		}
		return headline
	case GateCAD:
		headline := a.Tool + s.object(args) + " in workspace " + word("workspace_id")
		if fleet := word("fleet_agent"); fleet != "" {
			headline += " by " + fleet + " as " + word("agent_id")
		}
		return headline
	}
	switch a.Kind {
	case KindExec:
		return "run " + commandLine(args["argv"]) + of(word("dir"), " in ")
	case KindSkill:
		return "run skill " + cmp.Or(word("skill"), a.Tool) + s.object(nested(args, "params"))
	case KindMCP:
		return "call " + word("tool") + " of " + word("server") + s.object(nested(args, "args"))
	case "agent.prompt":
		return "tell agent " + word("agent") + ": " + word("message")
	case "tree.merge":
		return "take " + word("agent") + "'s work over into " + word("into") + a.lies()
	case "tree.undo":
		return "take back the merge " + word("task") + " of " + word("agent") + "'s work"
	case "tree.push":
		return "push " + word("agent") + "'s work to " + word("branch") + " of " + word("url")
	case "tree.setup":
		return "set the tree of " + word("agent") + " up"
	case "tree.check":
		return "test " + word("agent") + "'s work"
	case "plan.decompose":
		return "make a plan of the goal: " + word("goal")
	}
	if a.Tool == "" {
		return a.Kind + s.object(args)
	}
	return a.Tool + s.object(args)
}

// calls are the tools that it is about: of connections, each HOST:PORT that is wanted.
func (a *Action) calls() []string {
	var in struct {
		Others []string `json:"other_hosts"`
	}
	if a.Kind == KindNet {
		_ = json.Unmarshal(a.Args, &in) // who asks wrote them so, or names no other
	}
	return append([]string{a.Tool}, in.Others...)
}

// lies names what an action brings to where it runs by lying there.
func (a *Action) lies() string {
	for i := range a.Files {
		first, rest, more := strings.Cut(a.Files[i].Lies, "\n")
		if more {
			first += fmt.Sprintf(", as do %d more", strings.Count(rest, "\n")+1)
		}
		if first != "" {
			return ", of which " + first
		}
	}
	return ""
}

func of(name, before string) string {
	if name == "" {
		return ""
	}
	return before + name
}

// object is what a call is about: its command, else what was pulled out of its
// arguments, else the first of them that is a word.
func (s *Subject) object(args map[string]any) string {
	for _, in := range []map[string]any{args, nested(args, "input"), nested(args, "params"), nested(args, "args")} {
		for _, key := range effect.CommandKeys {
			line := commandLine(in[key])
			if line == "" {
				continue
			}
			if more := commandLine(in["args"]); more != "" {
				line += " " + more
			}
			return " " + line + of(asText(in["cwd"]), " in ")
		}
	}
	out := ""
	for _, part := range []struct {
		before string
		of     []string
	}{{" ", s.Paths}, {" at ", s.Hosts}, {" to ", s.Recipients}, {", ", s.Amounts}} {
		if len(part.of) > 0 {
			out += part.before + part.of[0]
			if more := len(part.of) - 1; more > 0 {
				out += fmt.Sprintf(" and %d more", more)
			}
		}
	}
	if out != "" {
		return out
	}
	for _, key := range slices.Sorted(maps.Keys(args)) {
		if v := asText(args[key]); v != "" && key != "title" { // what the agent calls it
			return " " + key + " " + v
		}
	}
	return ""
}

func nested(args map[string]any, key string) map[string]any {
	in, _ := args[key].(map[string]any)
	return in
}

func asText(v any) string { s, _ := v.(string); return s }

// commandLine is a command as a shell would read it; a text is one already.
func commandLine(v any) string {
	if s := asText(v); s != "" {
		return s
	}
	list, _ := v.([]any)
	words := make([]string, 0, len(list))
	for _, w := range list {
		s, ok := w.(string)
		if !ok {
			return ""
		}
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !plainWord(r) }) {
			s = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
		words = append(words, s)
	}
	return strings.Join(words, " ")
}

func plainWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,~", r)
}

// Words of the names of arguments that say what their value is.
var (
	pathWords      = []string{"path", "paths", "file", "files", "filename", "filepath", "dir", "directory", "folder", "cwd", "source", "src", "destination", "dest"}
	hostWords      = []string{"host", "hosts", "hostname", "domain", "endpoint"}
	recipientWords = []string{"to", "cc", "bcc", "recipient", "recipients", "email", "emails", "channel", "phone"}
	amountWords    = []string{"amount", "price", "cost", "total", "sum", "quantity", "qty", "payment"}
)

// pull takes hosts, paths, recipients and amounts out of a value, by what its name
// says and by how it looks.
func (s *Subject) pull(name string, v any, in map[string]any, depth int) {
	if depth > maxDepth {
		return
	}
	words := effect.Words(name)
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			s.pull(key, v[key], v, depth+1)
		}
	case []any:
		for _, e := range v {
			s.pull(name, e, in, depth+1)
		}
	case core.Digits:
		s.pull(name, string(v), in, depth)
	case float64:
		if has(amountWords) {
			add(&s.Amounts, name+" "+strconv.FormatFloat(v, 'f', -1, 64)+of(asText(in["currency"]), " "))
		}
	case string:
		long := len(v) > maxPart || strings.ContainsAny(v, "\r\n")
		switch {
		case long:
		case has(amountWords) && strings.ContainsAny(v, "0123456789"):
			add(&s.Amounts, name+" "+v+of(asText(in["currency"]), " "))
		case has(recipientWords) && !strings.Contains(v, "://"):
			add(&s.Recipients, v)
		case has(hostWords):
			add(&s.Hosts, hostOf(v))
		case has(pathWords) && !strings.Contains(v, "://"):
			add(&s.Paths, v)
		}
		s.spot(v)
	}
}

// spot finds addresses of the network and of people in a text.
func (s *Subject) spot(text string) {
	if !strings.Contains(text, "://") && !strings.Contains(text, "@") {
		return
	}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'<>(),;|`, r) }) {
		if at := strings.Index(w, "://"); at > 0 {
			if u, err := url.Parse(strings.TrimLeft(w, "-=")); err == nil && u.Host != "" {
				add(&s.Hosts, u.Host)
			}
			continue
		}
		user, host, ok := strings.Cut(w, "@")
		switch host, path, copied := strings.Cut(host, ":"); {
		case !ok || user == "" || !strings.Contains(host, ".") && !copied:
		case copied && path != "": // scp and git
			add(&s.Hosts, host)
		case strings.Contains(host, "."):
			add(&s.Recipients, w)
		}
	}
}

// hostOf is the host of an address, or the text where it is none.
func hostOf(v string) string {
	if u, err := url.Parse(v); err == nil && u.Host != "" {
		return u.Host
	}
	return v
}

// add keeps a part that is not there yet, while there is room.
func add(list *[]string, part string) {
	part = core.ClipTo(strings.TrimSpace(part), maxPart)
	if part == "" || len(*list) >= maxPulled || slices.Contains(*list, part) {
		return
	}
	*list = append(*list, part)
}

// Whether an action can be taken back.
const (
	undoYes     = "yes"
	undoPartly  = "partly"
	undoNo      = "no"
	undoUnknown = "unknown"
)

// undos say, by what an action does, the gravest first, whether it can be taken back
// and how.
var undos = []struct{ does, can, how string }{
	{effect.Havoc, undoNo, "A system, a disk or a home would be gone."},
	{"spend", undoNo, "What is spent is gone, unless its receiver refunds it."},
	{"publish", undoNo, "Others have it then. It can be withdrawn, not unsent."},
	{effect.Secret, undoNo, "Who has read a secret has it. Replace the secret afterwards."},
	{"destroy", undoNo, "What it deletes, overwrites or stops is gone, unless it is kept elsewhere: a commit, a backup, a snapshot."},
	{"escalate", undoPartly, "Rights can be taken away again; what was done with them stays."},
	{effect.Opaque, undoUnknown, "What it does can't be told from here."},
	{"network", undoPartly, "What is sent stays sent."},
	{effect.Write, undoPartly, "What is written can be written back: the change is below, or the work tree has it (git diff)."},
	{effect.Read, undoYes, "It changes nothing."},
}

// undo says whether an action can be taken back, and how.
func undo(gate Gate, a *Action, effects []string) (can, how string) {
	switch gate {
	case GateNet:
		return undoPartly, "Close it again with egress deny; what was sent stays sent."
	case GateBudget:
		return undoPartly, "Lower it again with budget set; what was spent meanwhile is spent."
	case GateAgent:
		return undoNo, "Its log and what it keeps go with it. The audit log stays."
	case GateGrant:
		return undoPartly, "grant revoke ends it; what it let pass until then stays. Each use is recorded."
	case GateQuestion:
		if _, ok := a.called(); !ok {
			return undoNo, "Who asks knows then what it is told. Nothing else is approved by it."
		}
	case GateResult:
		return undoPartly, "The task can be dispatched again with task retry; what waits for this result goes on with it."
	}
	switch a.Kind {
	case "tree.merge", "tree.undo":
		return undoYes, "merge undo takes it back until the base moves on or a remote has it; the work stays in the tree."
	case "tree.push":
		return undoNo, "Others have it then. It can be withdrawn, not unsent."
	case "tree.setup":
		return undoYes, "It runs in a cell, in the agent's own tree, which goes with the agent."
	case "tree.check":
		return undoYes, "It runs in a cell, on a copy that goes afterwards."
	}
	for _, u := range undos {
		if slices.Contains(effects, u.does) {
			return u.can, u.how
		}
	}
	if a.Kind == "agent.prompt" || a.Kind == "plan.decompose" {
		return undoPartly, "task cancel ends it; what was done until then stays. Each step asks for itself."
	}
	return undoUnknown, "What it does is on no list. It can do what the walls around it allow."
}
