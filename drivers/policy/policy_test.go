package policy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAGoodProgramDecides(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	p := program(python, `import json, sys
ask = json.load(sys.stdin)
sys.stderr.write("seen \x1b[31m" + ask["action"]["tool"] + "\u202e\n")
print(json.dumps({"decision": "abort", "reason_code": "bad.tool", "confidence": 0.9, "rationale": "no", "rule_id": "r1"}))
`)
	got := r.Decide(context.Background(), p, []byte(`{"schema":1,"action":{"tool":"rm"}}`))
	if got.Decision != "abort" || got.ReasonCode != "bad.tool" || *got.Confidence != 0.9 || got.Rationale != "no" || got.RuleID != "r1" || got.Fault {
		t.Fatalf("got %+v", got)
	}
	expect.True(t, !got.Unsandboxed && got.Stderr == "seen \uFFFD[31mrm\uFFFD", "unsandboxed %v, stderr %q", got.Unsandboxed, got.Stderr)
}

func TestAProgramRunsAsNobodyWithAFixedEnvironment(t *testing.T) {
	r := jailedRunner(t)
	t.Setenv("SECRET_TOKEN", "x")
	p := program(sh, `test -z "$SECRET_TOKEN" && test "$(id -u)" != 0 && echo '`+yes+"'\n")
	got := r.Decide(context.Background(), p, nil)
	expect.Must(t, got.Decision == "approve", "got %+v", got)
}

func TestWithoutAJailADecisionSaysSo(t *testing.T) {
	r := runner(t, Options{Unjailed: "told so", Deadline: 2 * time.Minute})
	ok, why := r.Jailed(context.Background())
	expect.True(t, !ok && why == "told so", "jailed %v, %q", ok, why)
	got := r.Decide(context.Background(), program(sh, "echo '"+yes+"'\n"), nil)
	expect.True(t, got.Decision == "approve" && got.Unsandboxed, "got %+v", got)
	r.opt.Deadline = 300 * time.Millisecond
	got = r.Decide(context.Background(), program(sh, "sleep 600 &\nsleep 600\n"), nil)
	expect.True(t, got.ReasonCode == judge.ReasonTimeout && got.Unsandboxed, "got %+v", got)
}

func TestAChangedFileIsWrittenAnew(t *testing.T) {
	r := jailedRunner(t)
	p := program(sh, "echo '"+yes+"'\n")
	got := r.Decide(context.Background(), p, nil)
	expect.Must(t, got.Decision == "approve", "got %+v", got)
	file := filepath.Join(r.dir, p.Digest, fileName)
	expect.No(t, os.Remove(file))
	expect.No(t, os.WriteFile(file, []byte("echo '"+strings.Replace(yes, "approve", "deny", 1)+"'\n"), 0o755))
	got = r.Decide(context.Background(), p, nil)
	expect.Must(t, got.Decision == "approve", "got %+v", got)
}

func TestAProgramThatCouldNotBePlacedAsksAPerson(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	expect.No(t, os.WriteFile(file, nil, 0o600))
	r := runner(t, Options{Dir: filepath.Join(file, "below")})
	got := r.Decide(context.Background(), program(sh, "echo '"+yes+"'\n"), nil)
	expect.True(t, got.Decision == "hitl" && got.ReasonCode == judge.ReasonError, "got %+v", got)
}

func TestACallerWhoGoesEndsTheProgram(t *testing.T) {
	r := jailedRunner(t)
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, stop)
	got := r.Decide(ctx, program(sh, "sleep 600\n"), nil)
	expect.True(t, got.ReasonCode == judge.ReasonError, "got %+v", got)
}

// echo answers each line with its number and what it was asked.
const echoes = `import json, sys
n = 0
while True:
    line = sys.stdin.readline()
    if not line: break
    n += 1
    ask = json.loads(line)
    if ask.get("do") == "hang":
        while True: pass
    if ask.get("do") == "die": sys.exit(1)
    answer = json.dumps({"decision": "deny", "reason_code": "n" + str(n), "confidence": 1, "rationale": str(ask.get("of"))})
    if ask.get("do") == "twice": answer += "\n" + answer
    if ask.get("do") == "much": answer = "x" * 40000
    print(answer, flush=True)
`

func serving(source string) *judge.Program {
	p := program(python, source)
	p.Serve = true
	return p
}

func TestAProgramThatStaysAnswersLineByLine(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	p := serving(echoes)
	ask := func(doc string) judge.Reply { return r.Decide(context.Background(), p, []byte(doc)) }
	for i := 1; i <= 5; i++ {
		got := ask(fmt.Sprintf(`{"of":%d}`, i))
		expect.Must(t, got.ReasonCode == fmt.Sprintf("n%d", i) && got.Rationale == fmt.Sprint(i), "answer %d: %+v", i, got)
	}
	for _, c := range []struct{ do, want string }{
		{"hang", judge.ReasonTimeout}, {"die", judge.ReasonError}, {"twice", judge.ReasonBadOutput}, {"much", judge.ReasonBadOutput},
	} {
		if c.do == "hang" {
			r.opt.Deadline = 300 * time.Millisecond
		}
		got := ask(`{"do":"` + c.do + `"}`)
		r.opt.Deadline = 2 * time.Minute
		expect.True(t, got.ReasonCode == c.want && got.Decision == "hitl", "%s: got %+v, want %s", c.do, got, c.want)
		if got := ask(`{"of":7}`); got.ReasonCode != "n1" || got.Rationale != "7" { // a new life
			t.Errorf("after %s: got %+v", c.do, got)
		}
	}
	r.Release(p)
	got := ask(`{"of":8}`)
	expect.True(t, got.ReasonCode == "n1", "after its release: got %+v", got)
}

func TestAnAnswerToNoQuestionIsNotTakenForTheNext(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	p := serving(`import sys
while sys.stdin.readline():
    print('` + yes + `', flush=True)
`)
	got := r.Decide(context.Background(), p, []byte("{}"))
	expect.Must(t, got.Decision == "approve", "got %+v", got)
	one := expect.Of(r.servers.take(t.Context(), p.Name))(t)
	if _, err := one.proc.proc.Stdin.Write([]byte("{}\n")); err != nil { // a question of nobody's
		t.Fatal(err)
	}
	expect.Await(t, "answer", one.proc.spoke)
	r.servers.give(one)
	got = r.Decide(context.Background(), p, []byte("{}"))
	expect.True(t, got.ReasonCode == judge.ReasonBadOutput, "got %+v", got)
}

func TestAProgramThatStaysTakesManyAskersInTurn(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	p := serving(echoes)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			got := r.Decide(context.Background(), p, fmt.Appendf(nil, `{"of":%d}`, i))
			expect.True(t, got.Rationale == fmt.Sprint(i) || got.ReasonCode == judge.ReasonTimeout, "asked %d, got %+v", i, got)
		})
	}
	all.Wait()
}

func BenchmarkProgram(b *testing.B) {
	for _, c := range []struct {
		name string
		p    *judge.Program
	}{
		{"sh", program(sh, "echo '"+yes+"'\n")},
		{"python", program(python, "print('"+yes+"')\n")},
		{"serve", serving(echoes)},
	} {
		b.Run(c.name, func(b *testing.B) {
			need(b, c.p.Interpreter)
			r := jailedRunner(b)
			r.Decide(context.Background(), c.p, []byte(`{"of":1}`))
			for b.Loop() {
				if got := r.Decide(context.Background(), c.p, []byte(`{"of":1}`)); got.Fault {
					b.Fatalf("got %+v", got)
				}
			}
		})
	}
}
