package judge

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge/effect"
	"swarmdeck/engine/judge/topic"
	"swarmdeck/engine/schema"
)

// Question is what a server of MCP or an agent asks a person. It is the whole
// argument of its approval, so that the digest binds it and the card shows it. Who
// asks worded it.
type Question struct {
	Message string   `json:"message"`
	Server  string   `json:"server,omitempty"`  // that asks
	Agent   string   `json:"agent,omitempty"`   // that asks
	Schema  core.Raw `json:"schema,omitempty"`  // of the answer: an object whose members are no objects
	Options []Option `json:"options,omitempty"` // one of which is the answer {"option":"ID"}
	// Call are the arguments of the tool call that the options are ways to
	// approve: the action's tool is called, and judged as such.
	Call core.Raw `json:"call,omitempty"`
	// Tasks are those that it may be about, where that can't be told.
	Tasks []string `json:"tasks,omitempty"`
}

// Option is one way to answer.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// Bounds of a question.
const (
	MaxQuestion   = 4096      // bytes of its message
	maxAsked      = 20        // properties or options
	maxAskedName  = 128       // bytes of a property or option
	maxAskedLabel = 256       // bytes of a label
	maxAskedForm  = 64 << 10  // bytes of a schema
	maxContent    = 256 << 10 // bytes of an answer
)

const reasonQuestion = "question"

// Args checks a question and returns it as the arguments of its action. A schema is
// kept as far as it counts: its properties, and which are required.
func (q Question) Args() (core.Raw, error) {
	if len(q.Message) > MaxQuestion || !utf8.ValidString(q.Message) {
		return nil, core.Invalid("message", core.ClipTo(q.Message, 80), fmt.Sprintf("at most %d bytes of UTF-8", MaxQuestion))
	}
	var err error
	switch {
	case len(q.Options) > 0 && len(q.Schema) > 0:
		return nil, core.Errorf(core.InvalidInput, "schema: a question has that or options").With("field", "schema")
	case len(q.Options) > 0:
		err = q.checkOptions()
	default:
		q.Schema, err = asked(q.Schema)
	}
	if err != nil {
		return nil, err
	}
	args, err := core.Encode(&q)
	if err != nil {
		return nil, fmt.Errorf("encode a question: %w", err)
	}
	return args, CheckArgs(args)
}

func (q *Question) checkOptions() error {
	if len(q.Options) > maxAsked {
		return core.Invalid("options", fmt.Sprintf("%d", len(q.Options)), fmt.Sprintf("at most %d", maxAsked))
	}
	q.Options = slices.Clone(q.Options)
	seen := map[string]bool{}
	for i := range q.Options {
		o := &q.Options[i]
		if o.ID == "" || len(o.ID) > maxAskedName || !core.Printable(o.ID) || seen[o.ID] {
			return core.Invalid("options.id", core.ClipTo(o.ID, maxAskedName), fmt.Sprintf("1-%d printable bytes, each once", maxAskedName))
		}
		seen[o.ID] = true
		o.Label = core.ClipTo(strings.ToValidUTF8(o.Label, "\uFFFD"), maxAskedLabel)
	}
	return nil
}

// asked is the part of a requested schema that counts. What can't be asked for in a
// form of a few fields is refused, and so are secrets.
func asked(requested core.Raw) (core.Raw, error) {
	bad := func(name, why string) error {
		return core.Errorf(core.InvalidInput, "schema: %s: %s", core.ClipTo(joined(".", "properties", name), maxAskedName+16), why).With("field", "schema")
	}
	if len(requested) > maxAskedForm {
		return nil, core.Errorf(core.InvalidInput, "schema: %d bytes are not allowed; allowed: at most %d", len(requested), maxAskedForm).With("field", "schema")
	}
	var given struct {
		Type       string   `json:"type"`
		Properties core.Raw `json:"properties"`
		Required   []string `json:"required"`
	}
	if len(requested) > 0 {
		if err := core.DecodeStored(requested, &given); err != nil {
			return nil, core.Errorf(core.InvalidInput, "schema: %v", err).With("field", "schema")
		}
	}
	if given.Type != "" && given.Type != "object" {
		return nil, core.Invalid("schema.type", given.Type, "object")
	}
	properties := map[string]core.Raw{}
	if len(given.Properties) == 0 {
		given.Properties = core.Raw("{}")
	}
	if err := core.DecodeStored(given.Properties, &properties); err != nil {
		return nil, core.Errorf(core.InvalidInput, "schema: properties: %v", err).With("field", "schema")
	}
	if len(properties) > maxAsked {
		return nil, bad("", fmt.Sprintf("%d are not allowed; allowed: at most %d", len(properties), maxAsked))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if why := notAsked(name, properties[name]); why != "" {
			return nil, bad(name, why)
		}
	}
	kept := struct {
		Type       string   `json:"type"`
		Properties core.Raw `json:"properties"`
		Required   []string `json:"required,omitempty"`
		More       bool     `json:"additionalProperties"`
	}{"object", given.Properties, given.Required, false}
	for _, name := range kept.Required {
		if _, there := properties[name]; !there {
			return nil, bad(name, "is required and is none of them")
		}
	}
	form := core.MustEncode(kept)
	if wrong := schema.Check(form); len(wrong) > 0 {
		return nil, bad(strings.Join(wrong[0].Path[min(len(wrong[0].Path), 1):], "."), wrong[0].Message)
	}
	return form, nil
}

// notAsked says why a property can't be asked for, "" where it can.
func notAsked(name string, property core.Raw) string {
	if name == "" || len(name) > maxAskedName || !core.Printable(name) {
		return fmt.Sprintf("its name is not allowed; allowed: 1-%d printable bytes", maxAskedName)
	}
	var p struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Format string `json:"format"`
		Items  struct {
			Type  string     `json:"type"`
			Enum  []core.Raw `json:"enum"`
			AnyOf []core.Raw `json:"anyOf"`
		} `json:"items"`
	}
	if err := core.DecodeStored(property, &p); err != nil {
		return err.Error()
	}
	switch {
	case strings.EqualFold(p.Format, "password") || asksSecret(name) || asksSecret(p.Title):
		return "a secret must not be asked for (a password, token, key or the like): give it with `secret set`"
	case p.Type == "array" && (p.Items.Type == "" || p.Items.Type == "string") && len(p.Items.Enum)+len(p.Items.AnyOf) > 0:
		return ""
	case !slices.Contains([]string{"string", "number", "integer", "boolean"}, p.Type):
		return fmt.Sprintf("type %q is not allowed; allowed: string, number, integer, boolean, array of an enum", core.ClipTo(p.Type, 40))
	}
	return ""
}

// Words that end the name of a secret, and those that make one of a key.
var (
	secretEnds = []string{"password", "passwd", "passphrase", "passcode", "token", "secret", "secrets", "credential", "credentials", "apikey", "privatekey"}
	secretAre  = []string{"pwd", "otp", "cvv", "cvc", "pin"}
	secretKeys = []string{"api", "access", "private", "secret", "ssh", "signing", "encryption"}
)

// asksSecret says whether a property is named like a secret, however it is spelt.
func asksSecret(name string) bool {
	words := effect.Words(name)
	of := topic.NewFolder()
	for i, w := range words {
		w = of.Fold(w)
		words[i] = w
		if slices.Contains(secretAre, w) || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(w, end) }) ||
			i > 0 && (w == "key" || w == "code" && words[i-1] == "pass") && (words[i-1] == "pass" || slices.Contains(secretKeys, words[i-1])) {
			return true
		}
	}
	return false
}

// parseQuestion reads the arguments of an approval at GateQuestion.
func parseQuestion(args core.Raw) (q Question, err error) {
	if err = core.DecodeStored(args, &q); err != nil {
		return q, fmt.Errorf("read the question: %w", err)
	}
	return q, nil
}

// Question is what an approval at GateQuestion asks.
func (a *Approval) Question() (Question, error) {
	if a.Gate != GateQuestion {
		return Question{}, core.Errorf(core.InvalidInput, "approval %s: it is no question: its gate is %s", a.ApprovalID, a.Gate)
	}
	return parseQuestion(a.Action.Args)
}

// Needs says whether a yes to it has to say more than yes.
func (q *Question) Needs() bool {
	var form struct {
		Properties map[string]core.Raw `json:"properties"`
	}
	_ = core.DecodeStored(q.Schema, &form) // Args has read it
	return len(q.Options) > 0 || len(form.Properties) > 0
}

// called is the tool call that a question's options are ways to approve; ok is false
// where it is about none.
func (a *Action) called() (call Action, ok bool) {
	q, err := parseQuestion(a.Args)
	if err != nil || len(q.Call) == 0 {
		return call, false
	}
	return Action{Kind: KindTool, Server: a.Server, Tool: a.Tool, CallID: a.CallID, Args: q.Call}, true
}

// asker is who asks, as a part of a sentence.
func asker(a *Action, agent *AgentRef) string {
	if agent.Name != "" {
		return "agent " + word(agent.Name)
	}
	return word(a.Server)
}

// byQuestion is the verdict about a question: always a person's. Where its options
// approve a call, the policy denies that as ever, and says how risky it is and who
// answers.
func (j *policies) byQuestion(ctx context.Context, of *ruling, tenant string, ask *Ask, tr *trace) Verdict {
	v := Verdict{Decision: HITL, ReasonCode: reasonQuestion, Rationale: "A person answers questions.", PolicyVersion: of.version, Risk: claimed(ask.Risk)}
	if call, ok := ask.Action.called(); ok {
		about := *ask
		about.Gate, about.Action = GateTool, call
		if judged := j.by(ctx, of, tenant, &about, tr); judged.Decision == Approve {
			v.Risk = judged.Risk
		} else {
			v = judged
		}
	}
	v.bind(tenant, ask)
	return v
}

// takes checks what an answer says beside yes and no: at GateQuestion the content,
// which it replaces by what is handed on, with defaults; elsewhere there is none.
func (a *Approval) takes(ans *Answer) error {
	refuse := func(field, why string) error {
		return core.Errorf(core.InvalidInput, "%s: %s", field, why).With("field", field)
	}
	switch {
	case a.Gate != GateQuestion && len(ans.Content) > 0:
		return refuse("content", "only a question is answered with it; this is at the gate "+string(a.Gate))
	case !ans.Approve && len(ans.Content) > 0:
		return refuse("content", "only with an approval")
	case a.Gate != GateQuestion || !ans.Approve:
		return nil
	case len(ans.Edit) > 0:
		return refuse("edit", "a question is answered as it stands, with its content")
	case ans.Always != nil:
		return refuse("always", "no rule answers a question")
	}
	q, err := a.Question()
	if err != nil {
		return err
	}
	if len(ans.Content) == 0 {
		if q.Needs() {
			return refuse("content", "this question needs an answer: "+q.wants())
		}
		ans.Content = core.Raw("{}")
	}
	if err := core.CheckObject("content", ans.Content, maxContent); err != nil {
		return err
	}
	content, err := q.answered(ans.Content)
	if err == nil {
		content, err = core.Canonical(content)
	}
	if err != nil {
		return fmt.Errorf("approval %s: %w", a.ApprovalID, err)
	}
	ans.Content = content
	return nil
}

// wants says how an answer looks.
func (q *Question) wants() string {
	if len(q.Options) == 0 {
		return "--content with an object of its schema"
	}
	return `--content '{"option":"ID"}' with the id of one of its options`
}

// Check says what is wrong with the content of an answer.
func (q *Question) Check(content core.Raw) error {
	_, err := q.answered(content)
	return err
}

// answered checks the content of an answer and fills in defaults.
func (q *Question) answered(content core.Raw) (core.Raw, error) {
	if len(q.Options) == 0 {
		by, err := schema.New(q.Schema, nil)
		if err != nil {
			return nil, fmt.Errorf("read the schema of the question: %w", err)
		}
		return by.Check("content", content, true)
	}
	if _, err := q.Chosen(content); err != nil {
		return nil, err
	}
	return content, nil
}

// Chosen is the option that the content of an answer names.
func (q *Question) Chosen(content core.Raw) (Option, error) {
	var in struct {
		Option string `json:"option"`
	}
	if err := core.Decode(content, &in); err != nil {
		return Option{}, fmt.Errorf("content: %w", err)
	}
	ids := make([]string, len(q.Options))
	for i, o := range q.Options {
		if o.ID == in.Option {
			return o, nil
		}
		ids[i] = o.ID
	}
	return Option{}, core.Invalid("content.option", in.Option, list(ids))
}

// agrees refuses a yes that says another thing than an earlier one, where several
// persons must approve, and keeps what it says.
func (a *Approval) agrees(ans *Answer) error {
	if len(a.Content) > 0 && !bytes.Equal(a.Content, ans.Content) {
		return core.Errorf(core.Conflict, "approval %s: %s answered %s; who approves it too must answer the same, or deny", a.ApprovalID, joined(", ", a.Consenting()...), core.ClipTo(string(a.Content), 200)).With("field", "content")
	}
	a.Content = ans.Content
	return nil
}

// contentSHA256 names the content of an answer; "" for none.
func contentSHA256(content core.Raw) string {
	if len(content) == 0 {
		return ""
	}
	return core.SHA256(string(content))
}
