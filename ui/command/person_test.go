package command_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// person makes someone known by a key of their own, and returns the flags that
// prove to be them.
func (d *deck) person(name string, role operator.Role) string {
	d.t.Helper()
	public := d.key(name)
	d.line("operator set " + name + " --role " + string(role) + " --key '" + public + "'")
	return " --as " + name + " --key " + name + ".key "
}

// key makes a private key in NAME.key, and returns its public half.
func (d *deck) key(name string) string {
	d.t.Helper()
	seed := sha256.Sum256([]byte(name))
	private := ed25519.NewKeyFromSeed(seed[:])
	block := expect.Of(ssh.MarshalPrivateKey(private, ""))(d.t)
	d.no(os.WriteFile(filepath.Join(d.dir, name+".key"), pem.EncodeToMemory(block), 0o600))
	public := expect.Of(ssh.NewPublicKey(private.Public()))(d.t)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func TestAName(t *testing.T) {
	d := newDeck(t)
	d.env.Caller.Name, d.env.Caller.Proof = "", "uid:4294967294"
	d.line("session create --name mine")
	bob := d.person("bob", operator.Approver)
	d.person("viv", operator.Viewer)
	d.key("eve")
	d.line("operator set ann --role admin --uid 4294967294 --group on-call")
	dispatch := "task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}' "
	for _, c := range []struct{ name, line, by, proof string }{
		{"is that of the user's operator", dispatch, "ann", "uid:4294967294"},
		{"may be said where it is the user's", dispatch + "--as ann", "ann", "uid:4294967294"},
		{"is proved by a key", dispatch + bob, "bob", "SHA256:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := d.object(c.line)
			expect.True(t, task["created_by"] == c.by && strings.HasPrefix(str(task["created_person"]), c.proof),
				"by %v, %v", task["created_by"], task["created_person"])
		})
	}
	before := len(d.objects("audit list --kind operator.refused"))
	refused := []struct{ name, line, code, says string }{
		{"of another is refused without their key", dispatch + "--as bob", "DENIED", "at hand"},
		{"of another is refused with a key that is not theirs", dispatch + "--as bob --key eve.key", "DENIED", "at hand"},
		{"of nobody is refused", dispatch + "--as mallory", "DENIED", "no operator of that name"},
		{"of nobody is refused with any key", dispatch + "--as mallory --key eve.key", "DENIED", "no operator of that name"},
		{"of the system's user is refused where that is another's", "task list --as bob", "DENIED", "at hand"},
		{"gives the role of whose it is", dispatch + "--as viv --key viv.key", "DENIED", "needs the rights of operator"},
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			code, says, _ := d.fails(1, c.line)
			expect.True(t, code == c.code && strings.Contains(says, c.says), "%s %s", code, says)
		})
	}
	expect.Is(t, len(d.objects("audit list --kind operator.refused"))-before, len(refused)-1, "refusals are in the log")
	d.no(os.WriteFile(filepath.Join(d.dir, "open.key"), nil, 0o644))
	d.no(os.WriteFile(filepath.Join(d.dir, "text.key"), []byte("hello"), 0o600))
	for line, code := range map[string]int{
		dispatch + "--as bob --key none.key": 2,
		dispatch + "--as bob --key open.key": 2,
		dispatch + "--as bob --key text.key": 2,
		dispatch + "--as bob --key .":        2,
		"operator set eve --uid root":        2,
		"operator set eve --uid 4294967296":  2,
		"operator set eve --uid -1":          2,
		"operator set eve":                   2,
		"operator set eve --uid 4294967294":  1,
	} {
		kind, says, _ := d.fails(code, line)
		expect.True(t, kind == "INVALID_INPUT" || kind == "CONFLICT", "%s: %s %s", line, kind, says)
	}
}

func TestTheFirstOfTwoApprovalsSaysThatASecondIsNeeded(t *testing.T) {
	d := newDeck(t)
	d.write("asker", "#!/bin/sh\nread x\necho '{\"type\":\"tool_request\",\"call_id\":\"c\",\"tool\":\"db.drop\",\"args\":{},\"risk\":\"critical\"}'\nread answer\necho '{\"type\":\"result\",\"status\":\"succeeded\"}'\n")
	d.no(os.Chmod(filepath.Join(d.dir, "asker"), 0o700))
	bob := d.person("bob", operator.Approver)
	d.line("agent create asker --project p --task go -- " + filepath.Join(d.dir, "asker"))
	id := str(d.until("approval list --open", "status", "open")["approval_id"])
	expect.Has(t, d.line("approval approve "+id+" --reason fine"), "1 of 2 persons approved it: alice", "first")
	out := d.line("approval approve " + id + " --reason fine" + bob)
	expect.True(t, strings.Contains(out, "approved") && !strings.Contains(out, "of 2 persons"), "second: %s", out)
}
