package judge

import (
	"bytes"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/schema"
)

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
