package bound_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/expect"
)

type inner struct {
	Slots int `json:"slots,omitzero" allow:"1-1000 agents"`
}

type request struct {
	inner
	Priority     *int              `allow:"0-100"`
	StartTimeout time.Duration     `allow:"none or 1s-24h"`
	Share        float64           `allow:"0-1, a share"`
	LeaseS       int               `json:"lease_s" allow:"none or 5s-1h"`
	Wait         int64             `allow:"-1 to 3600, for ever"`
	Tokens       uint64            `allow:"0 or more"`
	Reason       string            `allow:"at most 5 printable characters"`
	Key          string            `allow:"at most 4 bytes without control characters"`
	Name         string            `allow:"1-5 of a-z 0-9 -, beginning with a letter or digit"`
	Effect       string            `json:"effect" allow:"none or read, write, hide"`
	After        []string          `allow:"at most 2 tasks"`
	Labels       map[string]string `allow:"at most 1"`
	Free         string
}

func valid() *request {
	return &request{inner: inner{1}, Name: "a-1", Tokens: 1 << 40, Share: 1, Wait: -1}
}

func TestAMemberIsRefusedByItsTag(t *testing.T) {
	for want, spoil := range map[string]func(*request){
		"": func(r *request) { r.Priority, r.StartTimeout, r.Effect = new(100), 24*time.Hour, "hide" },
		"slots: 0 is not allowed; allowed: 1-1000 agents":                                          func(r *request) { r.Slots = 0 },
		"priority: -1 is not allowed; allowed: 0-100":                                              func(r *request) { r.Priority = new(-1) },
		"start_timeout: 999ms is not allowed; allowed: none or 1s-24h":                             func(r *request) { r.StartTimeout = 999 * time.Millisecond },
		"lease_s: \"7200s\" is not allowed; allowed: none or 5s-1h":                                func(r *request) { r.LeaseS = 7200 },
		"share: NaN is not allowed; allowed: 0-1, a share":                                         func(r *request) { r.Share = math.NaN() },
		"share: +Inf is not allowed; allowed: 0-1, a share":                                        func(r *request) { r.Share = math.Inf(1) },
		"wait: -2 is not allowed; allowed: -1 to 3600, for ever":                                   func(r *request) { r.Wait = -2 },
		"reason: \"ééé\\t\" is not allowed; allowed: at most 5 printable characters":               func(r *request) { r.Reason = "ééé\t" },
		"reason: \"éééééé\" is not allowed; allowed: at most 5 printable characters":               func(r *request) { r.Reason = "éééééé" },
		"key: \"ééé\" is not allowed; allowed: at most 4 bytes without control characters":         func(r *request) { r.Key = "ééé" },
		"key: \"a\\x00\" is not allowed; allowed: at most 4 bytes without control characters":      func(r *request) { r.Key = "a\x00" },
		"name: \"\" is not allowed; allowed: 1-5 of a-z 0-9 -, beginning with a letter or digit":   func(r *request) { r.Name = "" },
		"name: \"-a\" is not allowed; allowed: 1-5 of a-z 0-9 -, beginning with a letter or digit": func(r *request) { r.Name = "-a" },
		"name: \"aB\" is not allowed; allowed: 1-5 of a-z 0-9 -, beginning with a letter or digit": func(r *request) { r.Name = "aB" },
		"effect: \"run\" is not allowed; allowed: none or read, write, hide":                       func(r *request) { r.Effect = "run" },
		"after: 3 is not allowed; allowed: at most 2 tasks":                                        func(r *request) { r.After = make([]string, 3) },
		"labels: 2 is not allowed; allowed: at most 1":                                             func(r *request) { r.Labels = map[string]string{"a": "", "b": ""} },
	} {
		r := valid()
		spoil(r)
		if err := bound.Check(r); want == "" {
			expect.No(t, err)
		} else {
			expect.Is(t, fmt.Sprint(err), want)
		}
	}
	expect.Has(t, fmt.Sprint(bound.CheckIn("options.", &request{inner: inner{1}})), "options.name: ")
}

func TestTheRuleOfAMemberIsFoundByItsAddress(t *testing.T) {
	r := valid()
	for member, want := range map[any]string{&r.Slots: "1-1000 agents", &r.StartTimeout: "none or 1s-24h", &r.Free: ""} {
		rule, _ := bound.Of(r, member)
		expect.Is(t, rule.Text, want)
	}
	rule, _ := bound.Of(r, &r.StartTimeout)
	expect.Is(t, rule.Span, true)
	expect.Is(t, time.Duration(rule.Most), 24*time.Hour)
	rule, _ = bound.Of(r, &r.Wait)
	expect.Is(t, rule.Span, false)
	rule, _ = bound.Of(r, &r.Effect)
	expect.Is(t, strings.Join(rule.Words, " "), "read write hide")
}

func TestWordsThatAreNoRangeAreRefused(t *testing.T) {
	for _, text := range []string{"9-1", "at most many tasks", "x or more", "1 to x", "1h-1m", "at least 1", "a path"} {
		expect.Fails(t, expect.Fault(bound.Parse(text)), text)
	}
}
