package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// An approval is bound to the sha256 of this RFC 8785 document (contract 2.4):
//
//	{"action":{"agent","call_id","files","gate","kind","server","tool"},"arguments":{…},
//	 "attempt":N,"policy_version":"…","task":"…","tenant":"…"}
//
// "files" is [{"mode","path","runs","sha256","size","unbound"}], and is there
// only where the action names files.
//
// The arguments are the final ones, after validation and edits. A task id is
// known only inside the transaction that makes the task, so the hash over
// everything before it is prepared outside.

// CheckArgs reports arguments that can't be bound to a digest: not one JSON
// object, too large, or with numbers that lose digits in a float64. Check at
// dispatch: Evaluate denies such an ask and Commit fails with this error.
func CheckArgs(args core.Raw) error {
	_, err := canonicalArgs(args)
	return err
}

func canonicalArgs(args core.Raw) (core.Raw, error) {
	if len(args) == 0 {
		return core.Raw("{}"), nil
	}
	if len(args) > core.MaxInput {
		return nil, core.CheckObject("args", args, core.MaxInput)
	}
	if args.Kind() != '{' {
		return nil, core.Errorf(core.InvalidInput, "args: want a JSON object").With("field", "args")
	}
	return core.Canonical(args)
}

// digestPrefix hashes the document up to and without the task's value.
func digestPrefix(ask *Ask, canonical core.Raw, version string) hash.Hash {
	h := sha256.New()
	b := make([]byte, 0, 256)
	b = append(b, `{"action":{"agent":`...)
	b = quote(b, ask.Agent.Name)
	b = append(b, `,"call_id":`...)
	b = quote(b, ask.Action.CallID)
	if len(ask.Action.Files) > 0 {
		b = append(b, `,"files":`...)
		b = appendFiles(b, ask.Action.Files)
	}
	b = append(b, `,"gate":`...)
	b = quote(b, string(ask.Gate))
	b = append(b, `,"kind":`...)
	b = quote(b, ask.Action.Kind)
	b = append(b, `,"server":`...)
	b = quote(b, ask.Action.Server)
	b = append(b, `,"tool":`...)
	b = quote(b, ask.Action.Tool)
	b = append(b, `},"arguments":`...)
	h.Write(b)
	h.Write(canonical)
	b = append(b[:0], `,"attempt":`...)
	b = strconv.AppendInt(b, int64(ask.Attempt), 10)
	b = append(b, `,"policy_version":`...)
	b = quote(b, version)
	b = append(b, `,"task":`...)
	h.Write(b)
	return h
}

// finish completes a prefix. It leaves prefix as it was.
func finish(prefix hash.Hash, task, tenant string) string {
	h, err := prefix.(hash.Cloner).Clone()
	if err != nil { // sha256 always can
		panic("judge: sha256 can't be cloned: " + err.Error())
	}
	b := make([]byte, 0, 128)
	b = quote(b, task)
	b = append(b, `,"tenant":`...)
	b = quote(b, tenant)
	b = append(b, '}')
	h.Write(b)
	sum := h.Sum(b[:0])
	return string(hex.AppendEncode(sum, sum)[sha256.Size:])
}

// Digest binds an ask to a policy version, as approvals store it.
func Digest(tenant, version string, ask Ask) (string, error) {
	canonical, err := canonicalArgs(ask.Action.Args)
	if err != nil {
		return "", err
	}
	return finish(digestPrefix(&ask, canonical, version), ask.TaskID, tenant), nil
}

// quote appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(b []byte, s string) []byte {
	out, _ := jsontext.AppendQuote(b, s)
	return out
}
