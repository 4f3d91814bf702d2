package policy

import (
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// A policy may pass its cases and turn hostile once it rules: whatever it then
// does, a person is asked, and told why.
const turncoat = `import json, socket, sys
for line in sys.stdin:
    do = json.loads(line)["action"]["tool"]
    if do == "network": socket.socket().connect(("127.0.0.1", 80))
    if do == "memory": x = bytearray(1 << 30)
    if do == "loop":
        while True: pass
    if do == "reads": open("/etc/passwd").read()
    if do == "floods": print("x" * (1 << 20), flush=True)
    if do == "nonsense": print("{", flush=True)
    word = "allow" if do == "word" else "approve"
    print(json.dumps({"decision": word, "reason_code": "ok", "confidence": 1, "rationale": ""}), flush=True)
`

func TestAPolicyThatTurnsHostileAsksAPerson(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "x.db"), store.Options{}))(t)
	defer db.Close()
	expect.No(t, db.CreateTenant(t.Context(), "t_acme"))
	ledger := audit.New(db, audit.Options{})
	j := expect.Of(judge.New(judge.Options{Ledger: ledger, Programs: r}))(t)
	by := core.Caller{Tenant: "t_acme", Name: "ann", Kind: core.Operator}
	in := judge.Proposal{
		Kind: judge.KindProgram, Interpreter: python, Source: []byte(turncoat),
		Cases: []byte(`{"name":"good","input":{"action":{"tool":"good"}},"expect":{"decision":"approve"}}`),
	}
	for _, in.Serve = range []bool{false, true} {
		r.opt.Deadline = 2 * time.Minute
		p, err := j.Propose(t.Context(), by, in)
		if err == nil {
			p, err = j.Activate(t.Context(), by, p.PolicyID)
		}
		expect.No(t, err)
		r.opt.Deadline = defaultDeadline // a loop must not use its time on the processor up before
		for do, want := range map[string]string{
			"network": judge.ReasonError, "memory": judge.ReasonError, "loop": judge.ReasonTimeout,
			"reads": judge.ReasonError, "floods": judge.ReasonBadOutput, "nonsense": judge.ReasonBadOutput, "word": judge.ReasonBadOutput,
		} {
			r.Release(&judge.Program{Name: "t_acme/" + p.Version}) // or it rests, for it fails in a row
			ask := judge.Ask{
				Gate: judge.GateTool, TraceID: core.NewTrace(nil), TaskID: core.NewID(core.TaskPrefix, "t_acme", 1), Attempt: 1,
				Action: judge.Action{Kind: "tool", Tool: do, Args: core.Raw(`{}`)}, Agent: judge.AgentRef{Name: "bob"},
				By: core.Caller{Tenant: "t_acme", Name: "bob", Kind: core.Agent, Door: core.DoorEngine},
			}
			v := j.Evaluate(t.Context(), "t_acme", ask)
			var open *judge.Approval
			expect.No(t, ledger.Update(t.Context(), ask.By, func(tx *audit.Tx) (err error) {
				_, open, err = j.Commit(tx, ask, v)
				return err
			}))
			// A loaded machine may be late with any answer.
			if open == nil || open.Status != judge.Open || open.ReasonCode != want && open.ReasonCode != judge.ReasonTimeout || open.Rationale == "" {
				t.Errorf("%s, serve %v: %+v (%s)", do, in.Serve, open, v.Rationale)
			}
		}
		expect.Fails(t, expect.Fault(j.Withdraw(t.Context(), by, p.PolicyID)), "what rules was withdrawn")
	}
}
