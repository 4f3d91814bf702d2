package e2e

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"swarmdeck/expect"
)

// lineSession is a plain session of an operator on another machine.
type lineSession struct {
	t     testing.TB
	s     *ssh.Session
	in    io.WriteCloser
	mu    sync.Mutex
	out   bytes.Buffer
	seen  int    // searched up to here
	enter string // what the key sends: a terminal in raw mode sends a carriage return
}

func (l *lineSession) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lineSession) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// plain opens a session that speaks in lines: line as the command, "" as the
// shell, on a terminal that says it is term, or without one for "".
func (g *guest) plain(term, line string) *lineSession {
	g.t.Helper()
	s, err := g.client.NewSession()
	expect.No(g.t, err)
	l := &lineSession{t: g.t, s: s, enter: "\n"}
	if term != "" {
		l.enter = "\r"
	}
	s.Stdout, s.Stderr = l, l
	if l.in, err = s.StdinPipe(); err == nil && term != "" {
		err = s.RequestPty(term, 24, 80, ssh.TerminalModes{ssh.ECHO: 0})
	}
	if err == nil && line != "" {
		err = s.Start(line)
	} else if err == nil {
		err = s.Shell()
	}
	expect.No(g.t, err)
	g.t.Cleanup(func() { _ = s.Close() })
	return l
}

func (l *lineSession) say(line string) {
	l.t.Helper()
	l.press(line + l.enter)
}

func (l *lineSession) press(keys string) {
	l.t.Helper()
	expect.Of(io.WriteString(l.in, keys))(l.t)
}

// see waits until what came after the last match has a match of pattern, and
// returns its first group, or all of it.
func (l *lineSession) see(pattern string) (found string) {
	l.t.Helper()
	re := regexp.MustCompile(pattern)
	expect.Await(l.t, "/"+pattern+"/", func() bool {
		fresh := l.text()[l.seen:]
		m := re.FindStringSubmatchIndex(fresh)
		if m == nil {
			return false
		}
		l.seen += m[1]
		found = fresh[m[len(m)-2]:m[len(m)-1]]
		return true
	})
	return found
}

// Everything that an operator has to do can be done in lines: over SSH without
// a terminal, on one that can do nothing, and when it is asked for.
func TestEveryTaskOfAnOperatorCanBeDoneInLines(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	signer, key := pair(t, 1)
	u.ok("--tenant", "t_acme", "operator", "set", "carol", "--role", "admin", "--key", key, "--group", "desk")
	g := d.enter("carol", signer)
	for name, open := range map[string]func() *lineSession{
		"without-a-terminal": func() *lineSession { return g.plain("", "") },
		"dumb":               func() *lineSession { return g.plain("dumb", "") },
		"asked-for":          func() *lineSession { return g.plain("xterm-256color", "--accessible") },
	} {
		t.Run(name, func(t *testing.T) {
			l := open()
			l.t = t
			l.see(`plain lines`)
			agent := "bob-" + name[:3]

			l.say("agent create " + agent + " --project p --role coder --task 'begin' -- sh -c 'while read -r line; do echo heard; sleep 300; done'")
			l.see(agent)
			l.say("agent list")
			l.see(agent + ` +\S+`)
			l.say("agent assign " + agent + " 'and go on'")
			l.see(`task_?\S*|k_\S+|t_\S+`)
			l.say("agent pause " + agent)
			l.see(agent)
			l.say("agent resume " + agent)
			l.see(agent)
			if l.enter == "\r" {
				l.say("agent log " + agent + " --follow")
				l.see(`still working on: agent log`)
				l.press("\x03")
				l.see(`\^C`)
				l.press("agent lissst\x7f\x7ft\r") // mistyped and put right
				l.see(agent + ` +\S+`)
			}
			l.say("agent log " + agent)
			l.say("agent cancel " + agent)
			l.say("agent delete " + agent)
			l.see(`say --yes to delete`)
			l.say("agent delete " + agent + " --yes")
			l.see(`waits: delete agent ` + agent + `|deleted|` + agent)

			l.say(`task dispatch --kind exec.run --input '{"argv":["echo","hello"]}' --wait`)
			l.see(`succeeded`)
			for _, answer := range [][]string{{"6", "desk"}, {"3", "not now"}, {"1", "it is fine"}} {
				if answer[0] == "3" { // the one that was handed on is answered by its id
					l.say("answer")
					l.see(`escalated: to desk`)
					l.see(`type a number:`)
					l.say("2")
					l.say("not mine")
					l.see(`by carol: not mine`)
				}
				l.say(`task dispatch --kind exec.run --input '{"argv":["rm","-r","/nonexistent-dir"]}'`)
				l.see(`waits: run rm -r /nonexistent-dir`)
				l.say("answer")
				l.see(`type a number:`)
				l.say(answer[0])
				l.say(answer[1])
				if answer[0] == "6" {
					l.see(`desk|tk_|ap_`)
					continue
				}
				l.see(`by carol: ` + answer[1])
			}
			l.say("estop on --reason smoke")
			l.see(`(?i)emergency stop: on; by carol: smoke`)
			l.say("estop off --reason clear")
			l.see(`(?i)emergency stop: off`)

			l.say("operator handover --since 1h")
			l.see(`Hand-over of t_acme`)
			l.see(`estop.off +carol`)
			l.say("operator here")
			l.say("budget set tenant --tokens 1000000")
			l.see(`tenant`)
			l.say("audit verify")
			l.see(`(?i)ok|intact|verified|holds`)
			l.say("help")
			l.see(`answer`)
			l.say("quit")
			// A pipe is told at its end that a line of it was refused.
			err := l.s.Wait()
			expect.True(t, (err != nil) == (name == "without-a-terminal"), "%v", err)
			out := l.text()
			expect.True(t, !strings.ContainsAny(out, "\x1b│┌─"), "not plain: %q", out)
		})
	}
}

func TestPlainSessionsKnowOfEachOther(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	var desks []*lineSession
	for i, name := range []string{"ann", "bob"} {
		signer, key := pair(t, byte(i))
		u.ok("operator", "set", name, "--role", "approver", "--key", key)
		l := d.enter(name, signer).plain("dumb", "")
		l.see(`plain lines`)
		desks = append(desks, l)
	}
	ann, bob := desks[0], desks[1]
	ann.see(`bob is here as approver, by ssh; here now: 2`)
	ann.say("needs")
	ann.see(`nothing needs you`)
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","/nonexistent-dir"]}`)
	id := ann.see(`approval (\S+) waits`)
	ann.say("needs")
	ann.see(id + ` waits: run rm -r /nonexistent-dir in \S+; risk: high; .*type answer ` + id)
	ann.say("answer")
	ann.see(`type a number:`)
	bob.see(`ann looks at approval ` + id)
	bob.say("answer")
	bob.see(`looked at by: ann`)
	bob.see(`type a number:`)
	out := u.ok("operator", "here", "-o", "json")
	expect.True(t, strings.Count(out, id) == 2, "who looks: %s", out)
	bob.say("7")
	for _, said := range []string{"anyone", "8h", "3", "it is gone anyway"} {
		bob.see(`or nothing to leave it open:`)
		bob.say(said)
	}
	bob.see(`by bob: it is gone anyway`)
	ann.say("1")
	ann.see(`or nothing to leave it open:`)
	ann.say("me too")
	ann.see(`bob`)
	expect.Has(t, u.ok("policy", "rules", "list", "-o", "json"), `"rule":"let anyone run `, "no rule")
	expect.Await(t, "nobody to look any more", func() bool { return !strings.Contains(u.ok("operator", "here", "-o", "json"), id) })
	bob.say("quit")
	ann.see(`bob left; here now: 1`)
}
