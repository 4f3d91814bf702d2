package egress

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// Request is what a process wants of a host: one HTTP request, or with the zero
// Method a whole connection, in which it may say anything.
type Request struct {
	Target
	// Method is that of HTTP in capitals; of git's protocol it is UploadPack or
	// ReceivePack, for all requests that belong to it.
	Method string
	// Path begins with "/" and has no query. It is in printable ASCII, with %XX
	// for every other character, for slashes that were written so, and for
	// percent signs. Of git it is the repository's.
	Path  string
	loose bool // servers may read the path in several ways
}

// The two services of git over HTTP: to read a repository, and to push to it.
const (
	UploadPack  = "git-upload-pack"
	ReceivePack = "git-receive-pack"
)

const (
	maxMethod = 32   // bytes
	maxPath   = 4096 // bytes of a request's path, as it is kept
)

// NewRequest reads the head of an HTTP request: its method, the path as it is
// sent, and the query without "?".
func NewRequest(to Target, method, path, query string) (Request, error) {
	if !isMethod(method) || method == "CONNECT" {
		return Request{}, core.Invalid("method", method, "a method of HTTP in capitals, not CONNECT")
	}
	clean, loose := cleanPath(path)
	if len(clean) > maxPath {
		return Request{}, core.Invalid("path", len(clean), "at most 4096 bytes")
	}
	r := Request{Target: to, Method: method, Path: clean, loose: loose}
	r.git(query)
	return r, nil
}

// question is what an answer about a request is about for the rest of its run: what
// reads stands for all that reads of its host.
func (r Request) question() Request {
	if slices.Contains(ReadOnly(), r.Method) && !r.loose {
		r.Method, r.Path = UploadPack, ""
	}
	return r
}

func isMethod(s string) bool {
	return s != "" && len(s) <= maxMethod && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// git makes a request of git's protocol one of its service and its repository.
// What may be either is a push.
func (r *Request) git(query string) {
	path := strings.TrimRight(slashed(r.Path), "/")
	cut := func(suffix string) bool {
		at := len(path) - len(suffix)
		if at < 0 || !strings.EqualFold(path[at:], suffix) {
			return false
		}
		r.Path = cmp.Or(path[:at], "/")
		return true
	}
	switch kind := service(query); {
	case cut("/" + ReceivePack):
		r.Method = ReceivePack
	case r.Method == "POST" && cut("/"+UploadPack):
		r.Method = UploadPack
	case kind != "" && cut("/info/refs"):
		r.Method = kind
	}
}

// service is the one that a query names, "" for none of git's.
func service(query string) string {
	values, err := url.ParseQuery(query)
	switch names := values["service"]; {
	case err != nil || len(names) > 1:
		return ReceivePack
	case len(names) == 1 && (names[0] == UploadPack || names[0] == ReceivePack):
		return names[0]
	}
	return ""
}

// cleanPath is the one way to write a path; loose reports one in which servers
// may see another.
func cleanPath(path string) (clean string, loose bool) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' {
			if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
				loose = true
			} else {
				c, escaped = unhex(path[i+1])<<4|unhex(path[i+2]), true
				i += 2
			}
		}
		switch {
		case c < ' ' || c == 0x7f || c == '\\' || c == ';':
			loose = true
			fallthrough
		case c <= ' ' || c > '~' || c == '%' || c == '/' && escaped || strings.IndexByte(`?#"<>^|`+"`", c) >= 0:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	clean = b.String()
	if !strings.HasPrefix(clean, "/") {
		return clean, true
	}
	for rest, more := clean, true; more; { // escaped twice
		if _, rest, more = strings.Cut(rest, "%25"); more && len(rest) >= 2 && isHex(rest[0]) && isHex(rest[1]) {
			loose = true
		}
	}
	parts := strings.Split(slashed(clean)[1:], "/")
	for i, part := range parts {
		loose = loose || part == "." || part == ".." || part == "" && i < len(parts)-1
	}
	return clean, loose
}

const upperHex = "0123456789ABCDEF"

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// slashed is a clean path with slashes for those that were written as %2F.
func slashed(path string) string { return strings.ReplaceAll(path, "%2F", "/") }

// Shown is the path as people read it and logs keep it: without what looks like
// a credential, and of a long one the first 512 bytes with a digest of it all.
func (r Request) Shown() string {
	parts := strings.Split(r.Path, "/")
	for i, p := range parts {
		if secret.LooksSecret("", p) {
			parts[i] = "…"
		}
	}
	text := strings.Join(parts, "/")
	if len(text) > maxShown {
		text = fmt.Sprintf("%s… (sha256 %x)", strings.ToValidUTF8(text[:maxShown], ""), sha256.Sum256([]byte(r.Path)))
	}
	return text
}

const maxShown = 512

// String is HOST:PORT, after METHOD for a request.
func (r Request) String() string {
	if r.Method == "" {
		return r.Target.String()
	}
	return r.Target.String() + " " + r.Method
}

// covers reports whether a rule about the host and the time is about what is
// wanted. Of a whole connection a rule about some requests allows nothing; if it
// denies, nobody could hold it in there, and all is denied.
func (r *Rule) covers(want *Request) bool {
	if !r.scoped() {
		return true
	}
	deny := r.Effect == Deny
	if want.Method == "" {
		return deny
	}
	if len(r.Methods) > 0 && !slices.Contains(r.Methods, want.Method) {
		return deny && want.loose && slices.Contains(r.Methods, ReceivePack)
	}
	switch {
	case r.Path == "":
		return true
	case want.loose:
		return deny
	}
	plain, whole := within(r.Path, want.Path), within(slashed(r.Path), slashed(want.Path))
	return plain && whole || deny && (plain || whole)
}

// within reports whether a path is that of a rule, or with * one that begins so.
func within(rule, path string) bool {
	if start, all := strings.CutSuffix(rule, "*"); all {
		return strings.HasPrefix(path, start)
	}
	return path == rule
}
