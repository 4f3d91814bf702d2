package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// rulesAsk is a judge that asks a person about everything.
func rulesAsk(t *testing.T) *fixture {
	return setup(t, withPolicy(policy(ruleLine("ask", "true", "hitl"), strings.ReplaceAll(ruleLine("tool", "true", "hitl"), "task.start", "tool.call"),
		strings.ReplaceAll(ruleLine("net", "true", "hitl"), "task.start", "net.connect"))))
}

// kindOf is an ask of a kind, by the robot in a session and a run of its task.
func kindOf(gate judge.Gate, kind, server, tool, args string) judge.Ask {
	ask := execBy(robot, args)
	ask.Gate, ask.Action.Kind, ask.Action.Server, ask.Action.Tool = gate, kind, server, tool
	ask.Agent = judge.AgentRef{Name: "robot", Project: "p"}
	ask.Session, ask.TaskID = "se_1", core.NewID(core.TaskPrefix, acme, 7)
	return ask
}

func execIn(dir string, words ...string) judge.Ask {
	return kindOf(judge.GateStart, judge.KindExec, "", "", string(core.MustEncode(map[string]any{"argv": words, "dir": dir})))
}

func TestAlwaysMatchesWhatItsLineSays(t *testing.T) {
	for _, c := range []struct {
		name    string
		ask     judge.Ask
		whom    string
		free    []string
		line    string
		matches []judge.Ask
		asks    map[string]judge.Ask
	}{{
		name: "a command", ask: execIn("/work/app", "npm", "test"), whom: "agent",
		line:    "let agent robot run `npm test` in /work/app up to 9 times within 1h of the approval",
		matches: []judge.Ask{execIn("/work/app", "npm", "test")},
		asks: map[string]judge.Ask{
			"another target":    execIn("/work/app", "npm", "run", "evil"),
			"one word more":     execIn("/work/app", "npm", "test", "--x"),
			"one word less":     execIn("/work/app", "npm"),
			"another directory": execIn("/work", "npm", "test"),
			"a directory below": execIn("/work/app/x", "npm", "test"),
			"no directory":      kindOf(judge.GateStart, judge.KindExec, "", "", `{"argv":["npm","test"]}`),
			"spelled otherwise": execIn("/work/app", "/usr/bin/npm", "test"),
			"dir otherwise":     execIn("/work/app/", "npm", "test"),
			"words in one":      execIn("/work/app", "npm test"),
			"an environment":    kindOf(judge.GateStart, judge.KindExec, "", "", `{"argv":["npm","test"],"dir":"/work/app","env":{"PATH":"."}}`),
			"an input":          kindOf(judge.GateStart, judge.KindExec, "", "", `{"argv":["npm","test"],"dir":"/work/app","stdin":"x"}`),
			"outside":           kindOf(judge.GateStart, judge.KindExec, "", "", `{"argv":["npm","test"],"dir":"/work/app","profile":"open"}`),
			"another agent":     with(execIn("/work/app", "npm", "test"), func(a *judge.Ask) { a.Agent.Name = "other" }),
			"another gate":      with(execIn("/work/app", "npm", "test"), func(a *judge.Ask) { a.Gate = judge.GateTool }),
		},
	}, {
		name: "a word of a command", ask: execIn("/w", "npm", "run", "a"), whom: "project", free: []string{"argv.2"},
		line:    "let agents of project p run `npm run *` in /w up to 9 times within 1h of the approval",
		matches: []judge.Ask{execIn("/w", "npm", "run", "b"), execIn("/w", "npm", "run", "a"), with(execIn("/w", "npm", "run", "b"), func(a *judge.Ask) { a.Agent.Name = "other" })},
		asks: map[string]judge.Ask{
			"two words":       execIn("/w", "npm", "run", "b", "c"),
			"no word":         execIn("/w", "npm", "run"),
			"another":         execIn("/w", "npm", "exec", "b"),
			"another project": with(execIn("/w", "npm", "run", "b"), func(a *judge.Ask) { a.Agent.Project = "q" }),
		},
	}, {
		name: "all words that follow", ask: execIn("/w", "go", "test"), whom: "session", free: []string{"argv.2+"},
		line:    "let anyone in session se_1 run `go test **` in /w up to 9 times within 1h of the approval",
		matches: []judge.Ask{execIn("/w", "go", "test"), execIn("/w", "go", "test", "-run", "X", "./...")},
		asks: map[string]judge.Ask{
			"another":         execIn("/w", "go", "run", "x"),
			"another session": with(execIn("/w", "go", "test"), func(a *judge.Ask) { a.Session = "se_2" }),
		},
	}, {
		name: "a line of a shell", ask: execIn("/w", "sh", "-c", "make && echo \"*\"\nx"), whom: "run",
		line: "let anyone in attempt 2 of task " + core.NewID(core.TaskPrefix, acme, 7) + " run `sh -c \"make && echo \\\"*\\\"\\nx\"` in /w up to 9 times within 1h of the approval",
		asks: map[string]judge.Ask{
			"more of it":      execIn("/w", "sh", "-c", "make && echo \"*\"\nx; y"),
			"as written":      execIn("/w", "sh", "-c", "make && echo \"*\"\\nx"),
			"another attempt": with(execIn("/w", "sh", "-c", "make && echo \"*\"\nx"), func(a *judge.Ask) { a.Attempt++ }),
			"another task":    with(execIn("/w", "sh", "-c", "make && echo \"*\"\nx"), func(a *judge.Ask) { a.TaskID = core.NewID(core.TaskPrefix, acme, 8) }),
		},
	}, {
		name: "a star that is one", ask: execIn("", "ls", "*"), whom: "anyone",
		line: "let anyone run `ls \"*\"` with dir=\"\" up to 9 times within 1h of the approval",
		asks: map[string]judge.Ask{"no star": execIn("", "ls", "x")},
	}, {
		name: "a file that it names", ask: with(execIn("/w", "make"), func(a *judge.Ask) { a.Action.Files = []judge.File{{Path: "Makefile", SHA256: "ab", Runs: true}} }), whom: "agent",
		line: "let agent robot run `make` in /w with Makefile as it is now (sha256 ab) up to 9 times within 1h of the approval",
		matches: []judge.Ask{ // of another make it is only worked on
			with(execIn("/w", "make"), func(a *judge.Ask) { a.Action.Files = []judge.File{{Path: "Makefile", SHA256: "ab"}} }),
		},
		asks: map[string]judge.Ask{
			"another content": with(execIn("/w", "make"), func(a *judge.Ask) { a.Action.Files = []judge.File{{Path: "Makefile", SHA256: "cd", Runs: true}} }),
			"none":            execIn("/w", "make"),
		},
	}, {
		name: "a file that changes", ask: with(execIn("/w", "tail", "log"), func(a *judge.Ask) { a.Action.Files = []judge.File{{Path: "log", SHA256: "ab"}} }), whom: "agent", free: []string{"files"},
		line:    "let agent robot run `tail log` in /w, whatever the files hold that it only works on, up to 9 times within 1h of the approval",
		matches: []judge.Ask{with(execIn("/w", "tail", "log"), func(a *judge.Ask) { a.Action.Files = []judge.File{{Path: "log", SHA256: "cd"}} })},
		asks: map[string]judge.Ask{
			"one that runs": with(execIn("/w", "tail", "log"), func(a *judge.Ask) { a.Action.Files = []judge.File{{Path: "log", SHA256: "cd", Runs: true}} }),
			"another":       execIn("/w", "tail", "shadow"),
		},
	}, {
		name: "a tool", ask: kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,"x"]},"text":"secret"}`), whom: "agent", free: []string{"text", "n.b.1"},
		line:    `let agent robot call acp/fs.write with n={b=[1, *]}, path="a", text=* up to 9 times within 1h of the approval`,
		matches: []judge.Ask{kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,"y"]},"text":{"a":1}}`), kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,2]}}`)},
		asks: map[string]judge.Ask{
			"another path": kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"b","n":{"b":[1,"x"]},"text":"secret"}`),
			"one more":     kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,"x"]},"text":"secret","mode":"755"}`),
			"a dotted key": kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,"x"]},"text":"secret","n.b.1":2}`),
			"a longer one": kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,"x",2]},"text":"secret"}`),
			"a command":    kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a","n":{"b":[1,"x"]},"text":{"command":"x"}}`),
			"a server":     kindOf(judge.GateTool, "tool", "other", "fs.write", `{"path":"a","n":{"b":[1,"x"]},"text":"secret"}`),
		},
	}, {
		name: "any arguments", ask: kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"path":"a"}`), whom: "agent", free: []string{"*"},
		line:    "let agent robot call acp/fs.write with any arguments up to 9 times within 1h of the approval",
		matches: []judge.Ask{kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"x":[1]}`)},
		asks: map[string]judge.Ask{
			"a command": kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"input":{"command":"ls"}}`),
			"a tool":    kindOf(judge.GateTool, "tool", "acp", "fs.move", `{"path":"a"}`),
		},
	}, {
		name: "a tool of a server", ask: kindOf(judge.GateStart, judge.KindMCP, "fs", "write", `{"server":"fs","tool":"write","args":{"path":"a","text":"x"},"tool_digest":"d"}`), whom: "agent", free: []string{"args.text"},
		line:    `let agent robot call fs/write with path="a", text=*, as its server describes it now up to 9 times within 1h of the approval`,
		matches: []judge.Ask{kindOf(judge.GateStart, judge.KindMCP, "fs", "write", `{"server":"fs","tool":"write","args":{"path":"a","text":"y"},"tool_digest":"d"}`)},
		asks: map[string]judge.Ask{
			"other arguments":     kindOf(judge.GateStart, judge.KindMCP, "fs", "write", `{"server":"fs","tool":"write","args":{"path":"b","text":"x"},"tool_digest":"d"}`),
			"another description": kindOf(judge.GateStart, judge.KindMCP, "fs", "write", `{"server":"fs","tool":"write","args":{"path":"a","text":"x"},"tool_digest":"e"}`),
		},
	}, {
		name: "a connection", ask: kindOf(judge.GateNet, judge.KindNet, "", "api.example:443", `{"host":"api.example","port":443,"process":"curl"}`), whom: "agent",
		line:    "let agent robot connect to api.example:443 up to 9 times within 1h of the approval",
		matches: []judge.Ask{kindOf(judge.GateNet, judge.KindNet, "", "api.example:443", `{"host":"api.example","port":443,"process":"git"}`)},
		asks: map[string]judge.Ask{
			"another port": kindOf(judge.GateNet, judge.KindNet, "", "api.example:80", `{"host":"api.example","port":80}`),
			"a host below": kindOf(judge.GateNet, judge.KindNet, "", "x.api.example:443", `{"host":"x.api.example","port":443}`),
		},
	}} {
		t.Run(c.name, func(t *testing.T) {
			f := rulesAsk(t)
			f.Own(judge.GateNet, f.owner)
			want := judge.Always{For: c.whom, Any: c.free, Expires: time.Hour, MaxUses: 9}
			a := f.opened(c.ask)
			offered := a.Offer(want)
			if offered.Line != c.line {
				t.Errorf("it says\n%s\nwant\n%s", offered.Line, c.line)
			}
			want.Digest = offered.Digest
			got, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Reason: "routine", Always: &want})
			if err != nil || got.Always != c.line {
				t.Fatalf("%q, %v", got.Always, err)
			}
			if r := f.rule(); r.Digest != offered.Digest || r.Line != strings.Replace(c.line, "within 1h of the approval", "until "+r.ExpiresAt.UTC().Format(time.DateTime)+" UTC", 1) {
				t.Errorf("listed as %q, %s", r.Line, r.Digest)
			}
			for i, ask := range append(c.matches, c.ask) {
				if !f.passes(ask) {
					t.Errorf("%d is asked about: %s", i, ask.Action.Args)
				}
			}
			for name, ask := range c.asks {
				if f.passes(ask) {
					t.Errorf("%s passes by a rule that does not say so", name)
				}
			}
			f.healthy()
		})
	}
}

// The next merge is of other work: a rule would say nothing about it.
func TestNoRuleIsOfferedForAMerge(t *testing.T) {
	f := setup(t)
	for _, kind := range []string{"tree.merge", "tree.undo"} {
		a := f.opened(kindOf(judge.GateStart, kind, "", "", `{"agent":"a","into":"main"}`))
		card := expect.Of(f.Card(t.Context(), acme, a.ApprovalID))(t)
		expect.True(t, card.Always == "" && len(card.For()) == 0, "%s: offers %q for %q", kind, card.Always, card.For())
		_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Always: &judge.Always{For: "agent", Expires: time.Hour, MaxUses: 5}})
		expect.Err(t, err, core.Kind(core.InvalidInput), kind)
	}
	f.healthy()
}

func with(ask judge.Ask, change func(*judge.Ask)) judge.Ask {
	change(&ask)
	return ask
}

// What was shown is what becomes the rule.
func TestAlwaysIsBoundToTheLineThatWasShown(t *testing.T) {
	f := rulesAsk(t)
	a := f.opened(execIn("/w", "make"))
	for name, w := range map[string]judge.Always{
		"longer":  {For: "agent", Expires: 2 * time.Hour, MaxUses: 5},
		"oftener": {For: "agent", Expires: time.Hour, MaxUses: 6},
		"wider":   {For: "anyone", Expires: time.Hour, MaxUses: 5},
		"any":     {For: "agent", Any: []string{"argv.1+"}, Expires: time.Hour, MaxUses: 5},
	} {
		w.Digest = a.Offer(judge.Always{For: "agent", Expires: time.Hour, MaxUses: 5}).Digest
		_, err := f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Always: &w})
		expect.Is(t, code(err), core.Conflict, name)
	}
	card, err := f.Card(t.Context(), acme, a.ApprovalID)
	if want := "let agent robot run `make` in /w up to 5 times within 1h of the approval"; err != nil || card.Always != want {
		t.Errorf("the card says %q, %v", card.Always, err)
	}
	if a.Offer(judge.Always{For: "agent", Expires: time.Hour, MaxUses: 5}).Digest != card.Offer(judge.Always{For: "agent", Expires: time.Hour, MaxUses: 5}).Digest {
		t.Error("the card offers another rule")
	}
}

func TestNoCommandMayBeAny(t *testing.T) {
	f := setup(t)
	for place, ask := range map[string]judge.Ask{
		"argv.2":        execIn("/w", "sh", "-c", "make"),
		"argv.1":        execIn("/w", "/usr/bin/env", "make"),
		"argv.0":        execIn("/w", "make"),
		"argv.0+":       execIn("/w", "make"),
		"argv":          execIn("/w", "make"),
		"dir":           execIn("/w", "make"),
		"*":             execIn("/w", "make"),
		"argv.7":        execIn("/w", "make"),
		"command":       kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"command":"ls"}`),
		"input.command": kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"input":{"command":"ls"}}`),
		"nowhere":       kindOf(judge.GateTool, "tool", "acp", "fs.write", `{"a":1}`),
		"tool_digest":   kindOf(judge.GateStart, judge.KindMCP, "fs", "x", `{"server":"fs","tool":"x","args":{},"tool_digest":"d"}`),
		"into":          kindOf(judge.GateStart, "tree.check", "", "", `{"agent":"a","into":"main"}`),
	} {
		_, err := f.approveAlways(ask, judge.Always{For: "anyone", Any: []string{place}, Expires: time.Hour, MaxUses: 1})
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), fmt.Sprintf("any: %q", place)) {
			t.Errorf("%s: %v", place, err)
		}
	}
	f.healthy()
}

// A line stays one that a person reads, whatever the arguments hold.
func TestAlwaysWithLongArgumentsNamesThemByTheirDigest(t *testing.T) {
	f := rulesAsk(t)
	long := strings.Repeat("long ", 1000)
	args := map[string]string{"a\u202eb\x1b": "\u202e\x1b[2J"}
	for i := range 50 {
		args[fmt.Sprint("k", i)] = "value"
	}
	for name, of := range map[string]any{"one": map[string]string{"path": long}, "many": args} {
		ask := kindOf(judge.GateTool, "tool", "acp", "fs.write", string(core.MustEncode(of)))
		a := f.opened(ask)
		line := a.Offer(judge.Always{For: "agent", Expires: time.Hour, MaxUses: 5}).Line
		if len(line) > 1000 || !strings.Contains(line, "sha256 ") || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// A rule of an older form did not say all that it matched: it matches nothing.
func TestARuleOfAnOlderFormIsEnded(t *testing.T) {
	f := rulesAsk(t)
	ask := execIn("/w", "make")
	if _, err := f.approveAlways(ask, always); err != nil || !f.passes(ask) {
		t.Fatal(err)
	}
	r := f.rule()
	err := f.ledger.Update(t.Context(), alice, func(tx *audit.Tx) error {
		old := fmt.Sprintf(`{"tenant_id":%q,"rule_id":%q,"scope":"tool","gate":"task.start","action":{"kind":"exec.run","args":{"argv":["make"]}},"owner":"alice",`+
			`"created_at":"2026-01-01T00:00:00Z","expires_at":"2036-01-01T00:00:00Z","max_uses":1000,"uses":0,"backtest":{"checked":0,"flips":0},"risk":"high","approval_id":%q}`, acme, r.RuleID, r.ApprovalID)
		return tx.Derived().Put(store.Bucket("always"), []byte{0, 0, 0, 0, 0, 0, 0, 1}, []byte(old))
	})
	expect.No(t, err)
	f.world.Crash()
	f.world.Open()
	if f.passes(ask) {
		t.Error("it lets pass what it never said")
	}
	if r := f.rule(); r.State(f.clock.Now()) != "ended" || r.Line != "made in an older form, and allows nothing any more" {
		t.Errorf("%s: %s", r.State(f.clock.Now()), r.Line)
	}
}
