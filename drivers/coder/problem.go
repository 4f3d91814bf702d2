package coder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
)

// explain turns any failure of a call into one error that says what was
// attempted, what is wrong and which field is to be looked at.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok { // ours, from the transport
		return fmt.Errorf("%s: %w", what, known)
	}
	if answer, ok := codersdk.AsError(err); ok {
		return fmt.Errorf("%s: %w", what, answered(answer))
	}
	return fmt.Errorf("%s: %w", what, broken(err))
}

// answered is the table of the server's refusals.
func answered(e *codersdk.Error) *core.Error {
	text := core.OneLine(e.Message, 300)
	if d := core.OneLine(e.Detail, 300); d != "" && d != text {
		text += " (" + d + ")"
	}
	field, allowed := "", ""
	for _, v := range e.Validations {
		field, allowed = core.OneLine(v.Field, 64), core.OneLine(v.Detail, 200)
		text += "; " + field + ": " + allowed
	}
	with := func(code core.Code, field, format string, args ...any) *core.Error {
		err := core.Errorf(code, format, args...).With("status", e.StatusCode())
		if field != "" {
			err = err.With("field", field)
		}
		return err
	}
	switch e.StatusCode() {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return with(core.InvalidInput, field, "the server refuses it: %s", text)
	case http.StatusUnauthorized:
		return with(core.Unavailable, "token", "token: the server does not know it, or it has expired")
	case http.StatusForbidden:
		return with(core.Unavailable, "token", "token: it may not do that: %s", text)
	case http.StatusNotFound, http.StatusGone:
		return with(core.NotFound, field, "it is not there, or not for this token: %s", text)
	case http.StatusConflict:
		return with(core.Conflict, field, "%s", text)
	case http.StatusTooManyRequests:
		return with(core.Unavailable, "", "the server's rate limit is reached")
	case http.StatusInternalServerError:
		return with(core.Internal, field, "the server failed: %s", text)
	}
	return with(core.Unavailable, field, "the server answers %d: %s", e.StatusCode(), text)
}

// broken is a call without an answer that can be read.
func broken(err error) *core.Error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	var failed *url.Error
	switch {
	case errors.As(err, &syntax), errors.As(err, &wrong):
		return core.Errorf(core.Unavailable, "url: this address does not answer like the Coder API").With("field", "url")
	case errors.Is(err, context.DeadlineExceeded):
		return core.Errorf(core.Unavailable, "the server does not answer in time")
	case errors.As(err, &failed):
		err = failed.Err // without the address, which may be long
	}
	return core.Errorf(core.Unavailable, "the server can't be reached: %s", core.OneLine(err.Error(), 300))
}

// gone reports that a thing is not there any more, or never was.
func gone(err error) bool { return errors.Is(err, core.Kind(core.NotFound)) }

// busy is the refusal of an agent that works (AgentBusyError).
func busy(name, why string) error {
	return core.Errorf(core.Conflict, "agent %s works: %s; only an idle agent takes a task", name, why).
		With("error", "AgentBusyError").With("field", "agent").With("value", name)
}
