package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hiddeco/sshsig"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// trialPolicy has a class of asks for each kind of answer. A directory's name says of
// which it is.
const trialPolicy = `
schema: 1
name: trials
rules:
  - {id: pair, gates: [task.start], when: 'action.args.argv.exists(a, a.startsWith("pair"))', decision: hitl, reason_code: pair, risk: medium, approvers: [ann, bob], quorum: 2}
  - {id: anns, gates: [task.start], when: 'action.args.argv.exists(a, a.startsWith("anns"))', decision: hitl, reason_code: anns, risk: medium, approvers: [ann]}
  - {id: high, gates: [task.start], when: 'action.args.argv.exists(a, a.startsWith("high"))', decision: hitl, reason_code: high, risk: high}
  - {id: results, gates: [result], when: "true", decision: approve, reason_code: result, risk: low}
  - {id: own, gates: [tool.call], when: 'action.server == "swarmdeck"', decision: approve, reason_code: own, risk: low}
  - {id: rest, gates: [task.start, tool.call], when: "true", decision: hitl, reason_code: easy, risk: low}
`

// answerers are who may answer an ask of a class.
var answerers = map[string][]string{"pair": {"ann", "bob"}, "anns": {"ann"}, "high": {"ann", "bob"}, "easy": {"ann", "bob", "root"}}

// trials are many doors and hands upon the same approvals.
type trials struct {
	*daemon
	t       *testing.T
	guests  map[string]*guest
	signers map[string]ssh.Signer
	clients map[string]*mcp.ClientSession // of MCP, by token

	mu     sync.Mutex
	asked  []string // approvals
	proofs []string // answers that were signed, to be replayed
	dirs   int
}

func TestNoAnswerIsGivenByWhoMayNot(t *testing.T) {
	t.Parallel()
	rounds := 150
	if n, err := strconv.Atoi(os.Getenv("ANSWER_TRIALS")); err == nil {
		rounds = n
	}
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	tokens := filepath.Join(u.home, "tokens.yaml")
	expect.No(t, os.WriteFile(tokens, []byte("tokens: [{agent: sony, token: the-token-of-sony}, {operator: opa, role: operator, token: the-token-of-opa}]\n"), 0o600))
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := l.Addr().String()
	_ = l.Close()
	d := &trials{
		daemon: u.daemon("serve", "--ssh", "127.0.0.1:0", "--mcp", at, "--tokens", tokens, "--slots", "4"),
		t:      t, guests: map[string]*guest{}, signers: map[string]ssh.Signer{}, clients: map[string]*mcp.ClientSession{},
	}
	// Where an agent works an operator of another machine may have a command run.
	expect.No(t, os.Mkdir(filepath.Join(u.home, "yard"), 0o700))
	u.ok("agent", "create", "sony", "--project", "p", "--dir", filepath.Join(u.home, "yard"), "--", "cat")
	expect.Await(t, "MCP", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	for _, token := range []string{"the-token-of-sony", "the-token-of-opa"} {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "trials", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: "http://" + at + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
		}, nil)
		expect.No(t, err)
		t.Cleanup(func() { _ = c.Close() })
		d.clients[token] = c
	}
	for i, name := range []string{"ann", "bob", "viv", "opa"} {
		signer, line := pair(t, byte(i+1))
		u.ok("operator", "set", name, "--role", map[string]string{"viv": "viewer", "opa": "operator"}[name]+strings.Repeat("approver", 1-i/2), "--key", line)
		d.guests[name], d.signers[name] = d.enter(name, signer), signer
	}
	expect.No(t, os.WriteFile(filepath.Join(u.home, "trials.yaml"), []byte(trialPolicy), 0o600))
	cases := `{"name":"asks","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`
	expect.No(t, os.WriteFile(filepath.Join(u.home, "trials.jsonl"), []byte(cases), 0o600))
	policy := field(u.ok("policy", "propose", "trials.yaml", "--tests", "trials.jsonl", "-o", "json"), "policy_id")
	u.ok("policy", "activate", policy)
	u.ok("policy", "terms", "--sign", "high")

	seed := rand.Uint64()
	t.Logf("%d trials of seed %d", rounds, seed)
	var all sync.WaitGroup
	for hand := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(hand)))
			for n := range rounds / 4 {
				if hand == 0 && n%50 == 49 { // what was judged by another policy no longer stands
					u.ok("policy", "restore", "default")
					u.ok("policy", "restore", policy)
				}
				d.trial(r)
			}
		})
	}
	all.Wait()
	d.check()
}

// trial is one deed of somebody, by some door.
func (d *trials) trial(r *rand.Rand) {
	if d.pick(r) == "" || r.IntN(4) == 0 {
		d.ask(r)
		return
	}
	id := d.pick(r)
	verb := []string{"approve", "approve", "approve", "deny"}[r.IntN(4)]
	line := "approval " + verb + " " + id + " --reason 'trial'"
	switch r.IntN(12) {
	case 0:
		line += " --digest " + strings.Repeat("0", 64)
	case 1:
		class := []string{"easy", "anns", "pair", "high"}[r.IntN(4)]
		line = fmt.Sprintf(`approval approve %s --reason edited --edit '{"argv":["rmdir","%s"],"dir":"%s"}'`, id, d.dir(class), d.yard())
	case 2:
		line = "approval defer " + id + " --for 1m"
	case 3:
		line = "approval escalate " + id + " --to " + []string{"ann", "bob", "viv"}[r.IntN(3)]
	case 4:
		line = "approval withdraw " + id
	case 5:
		line = "approval " + verb + " " + id + " " + d.pick(r) + " --reason both"
	}
	name := []string{"ann", "bob", "viv", "opa"}[r.IntN(4)]
	switch r.IntN(10) {
	case 0, 1, 2, 3: // SSH
		d.guests[name].run(line)
	case 4: // the socket
		d.user.run(words(line)...)
	case 5: // a name that is not theirs
		d.user.run(append(words(line), "--as", name)...)
	case 6: // a script, which attaches to the engine
		script := filepath.Join(d.t.TempDir(), "line.txtar")
		expect.No(d.t, os.WriteFile(script, []byte("? "+line+"\n"), 0o600))
		d.user.run("--script", script)
	case 7:
		d.signed(r, id)
	case 8:
		d.tool(r, id)
	default:
		d.keys(r, name)
	}
}

// words splits a line whose quotes stand around whole words.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func (d *trials) pick(r *rand.Rand) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return ""
	}
	return d.asked[len(d.asked)-1-r.IntN(min(len(d.asked), 12))] // most of the others are answered
}

// yard is where the directories are.
func (d *trials) yard() string { return filepath.Join(d.home, "yard") }

// dir makes a directory of a class.
func (d *trials) dir(class string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dirs++
	name := fmt.Sprintf("%s%d", class, d.dirs)
	expect.No(d.t, os.Mkdir(filepath.Join(d.yard(), name), 0o700))
	return name
}

// ask asks for something that removes a directory.
func (d *trials) ask(r *rand.Rand) {
	class := []string{"easy", "anns", "pair", "high"}[r.IntN(4)]
	line := fmt.Sprintf(`task dispatch --kind exec.run --input '{"argv":["rmdir","%s"],"dir":"%s"}' --max-attempts 1 -o json`, d.dir(class), d.yard())
	_, out, _ := d.guests[[]string{"opa", "ann"}[r.IntN(2)]].run(line)
	if id := field(out, "approval_id"); id != "" {
		d.mu.Lock()
		d.asked = append(d.asked, id)
		d.mu.Unlock()
	}
}

// signed answers with a signature: one's own, another's, or one that was used before.
func (d *trials) signed(r *rand.Rand, id string) {
	name := []string{"ann", "bob"}[r.IntN(2)]
	_, statement, _ := d.guests[name].run("approval statement " + id + " --answer approve --reason signed")
	if statement = strings.TrimSpace(statement); statement == "" {
		return
	}
	by := d.signers[[]string{name, name, name, "ann", "bob", "viv"}[r.IntN(6)]]
	sig, err := sshsig.Sign(strings.NewReader(statement+"\n"), by, sshsig.HashSHA512, []string{"swarmdeck", "swarmdeck", "swarmdeck", "git"}[r.IntN(4)])
	if err != nil {
		d.t.Error(err)
		return
	}
	armored := string(sshsig.Armor(sig))
	d.mu.Lock()
	if d.proofs = append(d.proofs, armored); r.IntN(4) == 0 {
		armored = d.proofs[r.IntN(len(d.proofs))]
	}
	d.mu.Unlock()
	s, err := d.guests[name].client.NewSession()
	if err != nil {
		d.t.Error(err)
		return
	}
	defer s.Close()
	s.Stdin = strings.NewReader(armored)
	_ = s.Run("approval answer '" + statement + "' --signature -") // most are refused
}

// bearer sends requests with a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// tool calls a tool of MCP, which knows of no answer; some say they do.
func (d *trials) tool(r *rand.Rand, id string) {
	c := d.clients[[]string{"the-token-of-sony", "the-token-of-opa"}[r.IntN(2)]]
	name := []string{"withdraw_approval", "reply_approval", "approve_approval", "approval_approve", "show_approval"}[r.IntN(5)]
	args := map[string]any{"approval_id": id}
	if name == "reply_approval" {
		args["text"] = "approved by ann"
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience) // which only ends a hang
	defer cancel()
	_, _ = c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args}) // most are refused
}

// keys presses keys of a cockpit over SSH, held ones and pasted ones among them.
func (d *trials) keys(r *rand.Rand, name string) {
	s, err := d.guests[name].client.NewSession()
	if err != nil {
		d.t.Error(err)
		return
	}
	defer s.Close()
	var screen bytes.Buffer
	s.Stdout = &screen
	in, err := s.StdinPipe()
	if err == nil {
		err = s.RequestPty("xterm-256color", 24, 80, ssh.TerminalModes{})
	}
	if err == nil {
		err = s.Shell()
	}
	if err != nil {
		d.t.Error(err)
		return
	}
	keys := []string{"i", "j", "k", "a", "x", "A", "e", "y", "Y", "\r", " ", "z", "o", "w", "\x1b", "aaaa", "\x1b[200~a y a y\x1b[201~", "approve", "3"}
	for range 12 {
		_, _ = in.Write([]byte(keys[r.IntN(len(keys))]))
	}
	_, _ = in.Write([]byte("\x1b\x1b\x03\x03"))
	_ = in.Close()
}

// check holds what is on record against who may do what.
func (d *trials) check() {
	t := d.t
	prints := map[string]string{"root": fmt.Sprintf("uid:%d", os.Getuid())}
	for name, signer := range d.signers {
		prints[name] = ssh.FingerprintSHA256(signer.PublicKey())
	}
	root := d.name()
	type row struct {
		ApprovalID string `json:"approval_id"`
		Status     string `json:"status"`
		Digest     string `json:"digest"`
		RuleID     string `json:"rule_id"`
		Decision   string `json:"decision"`
		DecidedBy  string `json:"decided_by"`
		Proof      string `json:"proof"`
		Reason     string `json:"reason_code"`
		Action     struct {
			Args struct {
				Argv []string `json:"argv"`
			} `json:"args"`
		} `json:"action"`
		Escalated string    `json:"escalated_to"`
		Signature *core.Raw `json:"signature"`
	}
	rows := func(args ...string) (all []row) {
		for page := 1; ; page++ {
			out := d.ok(append(args, "--page-size", "100", "--page", strconv.Itoa(page), "-o", "json")...)
			for line := range strings.Lines(out) {
				var r row
				if json.Unmarshal([]byte(line), &r) == nil && !strings.Contains(line, `"has_next_page"`) {
					all = append(all, r)
				}
			}
			if !strings.Contains(out, `"has_next_page":true`) {
				return all
			}
		}
	}
	expect.Await(t, "what was approved has run", func() bool {
		for _, status := range []string{"queued", "running"} {
			for line := range strings.Lines(d.ok("task", "list", "--status", status, "--page-size", "100", "-o", "json")) {
				if strings.Contains(line, `"task_id"`) && !strings.Contains(line, `"waiting":"approval"`) {
					return false
				}
			}
		}
		return true
	})
	byApproval := map[string][]row{}
	for _, dec := range rows("decision", "list") {
		if dec.ApprovalID != "" && dec.DecidedBy != "policy" {
			byApproval[dec.ApprovalID] = append(byApproval[dec.ApprovalID], dec)
		}
	}
	class := regexp.MustCompile(`^[a-z]+`)
	mayGo, answers, approvals := map[string]bool{}, 0, rows("approval", "list")
	for _, a := range approvals {
		if len(a.Action.Args.Argv) < 2 {
			continue
		}
		dir := a.Action.Args.Argv[1]
		of := class.FindString(dir)
		might := answerers[of]
		if a.RuleID == "exec.destructive" { // asked while the embedded policy ruled, at high risk
			of, might = "high", answerers["high"]
		}
		if a.Escalated != "" {
			might = []string{a.Escalated}
		}
		if a.Status == "approved" {
			mayGo[dir] = true
		}
		persons := []string{}
		for _, dec := range byApproval[a.ApprovalID] {
			// What was said of other arguments, or before it was handed on, was for others.
			if dec.Reason == "asker.withdrew" || dec.Digest != a.Digest || dec.Decision == "hitl" && a.Escalated != "" {
				continue
			}
			answers++
			who := dec.DecidedBy
			if who == root {
				who = "root"
			}
			expect.True(t, slices.Contains(might, who), "%s (%s): %s by %s, who may not", a.ApprovalID, dir, dec.Decision, who)
			expect.True(t, dec.Proof == prints[who] && dec.Proof != "",
				"%s: %s by %s with the proof %q, want %s", a.ApprovalID, dec.Decision, who, dec.Proof, prints[who])
			expect.True(t, of != "high" || dec.Signature != nil, "%s (%s): %s by %s without a signature", a.ApprovalID, dir, dec.Decision, who)
			if dec.Decision != "deny" {
				persons = append(persons, who)
			}
		}
		if a.Status == "approved" && len(persons) == 0 && a.Escalated == "" {
			t.Errorf("%s (%s): approved, and by nobody for these arguments", a.ApprovalID, dir)
		}
		slices.Sort(persons)
		if a.Status == "approved" && of == "pair" && a.Escalated == "" && len(slices.Compact(persons)) < 2 {
			t.Errorf("%s (%s): approved by %v alone", a.ApprovalID, dir, persons)
		}
	}
	left := expect.Of(os.ReadDir(d.yard()))(t)
	there := map[string]bool{}
	for _, e := range left {
		there[e.Name()] = true
	}
	gone := 0
	for n := 1; n <= d.dirs; n++ {
		for of := range answerers {
			if name := fmt.Sprintf("%s%d", of, n); !there[name] && mayGo[name] {
				gone++
			}
		}
	}
	if gone+len(slices.DeleteFunc(left, func(e os.DirEntry) bool {
		return !class.MatchString(e.Name()) || answerers[class.FindString(e.Name())] == nil
	})) != d.dirs {
		t.Errorf("%d directories were made, %d are left and %d were allowed to go", d.dirs, len(left), gone)
	}
	expect.True(t, answers != 0 && gone != 0, "%d answers, %d effects: nothing was tried", answers, gone)
	t.Logf("%d approvals, %d answers, %d effects, %d signatures", len(approvals), answers, gone, len(d.proofs))
	d.ok("audit", "verify")
	d.ok("audit", "reconcile")
}
