// Package serve lets other processes and other machines into a running engine:
// a private socket for this user's commands and cockpits, and SSH for
// operators elsewhere. Both speak SSH, so that terminals, sizes, signals, exit
// codes and slow readers behave as they do there. The work of a session is done
// on the engine's side; the client passes bytes.
package serve

import (
	"cmp"
	"io"

	"swarmdeck/engine/operator"
	"swarmdeck/ui/term"
)

// Session is one command or cockpit that someone runs here from elsewhere.
type Session struct {
	Args []string
	Line string // that they are the words of
	// Dir is the client's directory; "" for one on another machine.
	Dir    string
	Getenv func(string) string
	// Stdin asks the client for its input when it is first read.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal is nil for a client without one.
	Terminal *term.Remote
	// Signer connects to what signs at the client; nil where nothing does.
	Signer func() (io.ReadWriteCloser, error)
	// Who is the operator that the client proved to be.
	Who Who

	// out and errs are Stdout and Stderr without what a terminal's lines need,
	// for what another engine wrote for it; nil is those.
	out, errs io.Writer
}

// Who is someone let in.
type Who struct {
	Name string
	Role string // viewer, operator, approver or admin
	// Tenant is the only one that they may enter; "" is any.
	Tenant string
	// Local is a process of this user on this machine.
	Local bool
	// Key is the fingerprint of the key that they came with.
	Key string
	// User is how a user of the machine of Peer is known, such as uid:1000@deck2;
	// "" for others.
	User string
	// From is the machine that they came from, "" for a local process.
	From string
	// Peer is the engine that vouches for them, at whose door they are; "" for
	// who came to this one's.
	Peer string
	// Origin is where a local process comes from.
	Origin operator.Origin

	peerKey string // fingerprint of the key of Peer
}

// Proof is how someone from elsewhere is known: by a key, or as a peer's user.
func (w Who) Proof() string { return cmp.Or(w.Key, w.User) }

// ScreenVariables are those that a client on another machine may set: what its terminal
// is, and nothing that chooses files or tenants here.
func ScreenVariables() []string {
	return []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "LANG", "LC_ALL", "LC_CTYPE", "ACCESSIBLE", "TERM_PROGRAM"}
}

// Screen is what an environment says of the screen, as "NAME=value".
func Screen(getenv func(string) string) (env []string) {
	for _, name := range ScreenVariables() {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Names of our own requests on a session's channel. A client that does not
// know them ignores them, as RFC 4254 section 5.4 wants.
const (
	wantInput = "stdin@swarmdeck"   // to the client: send your standard input
	doSuspend = "suspend@swarmdeck" // to the client: stop yourself
	doRun     = "run@swarmdeck"     // to the client: give your terminal to this program
	drawn     = "drawn@swarmdeck"   // from the client: so many bytes of output are on the screen

	endOfWrite = "eow@openssh.com" // to the server: nobody reads on
)

// Variables by which a client of the socket says what SSH has no word for.
const (
	varDir    = "SWARMDECK_SESSION_DIR"
	varSource = "SWARMDECK_SESSION_INPUT"  // "asked": input comes when asked for
	varOutput = "SWARMDECK_SESSION_OUTPUT" // "counted": it is said how much of it was taken
)
