package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// Target is where a connection goes.
type Target struct {
	Host string // lower case without a last dot, or an address in its shortest form
	Port uint16 // 1-65535; in a rule 0 is every port
}

const hostWords = "a host name (letters, digits, - _ and dots), an IP address, or *.DOMAIN"

// String is HOST:PORT, or HOST where a rule is about every port.
func (t Target) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.Port))
}

// Addr is the address that the host is itself, the zero Addr for a name.
func (t Target) Addr() netip.Addr {
	addr, err := netip.ParseAddr(t.Host)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// NewTarget checks where a process wants to connect to: host is a name or an
// address, with or without brackets.
func NewTarget(host string, port int) (Target, error) {
	name, err := cleanHost(host)
	if err != nil {
		return Target{}, err
	}
	if port < 1 || port > 65535 {
		return Target{}, core.Invalid("port", port, "1-65535")
	}
	return Target{name, uint16(port)}, nil
}

// cleanHost is the one way to write a host. Names beyond ASCII are refused
// unless they are written as xn--…: two names that look alike are two hosts.
// So are numbers that some resolvers take for addresses (0x7f.1, 127.1).
func cleanHost(host string) (string, error) {
	bare := host
	if in, ok := strings.CutPrefix(bare, "["); ok {
		if bare, ok = strings.CutSuffix(in, "]"); !ok {
			return "", core.Invalid("host", host, hostWords)
		}
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		if addr.Zone() != "" {
			return "", core.Invalid("host", host, "an address without a zone")
		}
		return addr.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(bare, "."))
	if name == "" || len(name) > 253 || bare != host {
		return "", core.Invalid("host", host, hostWords)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !plainLabel(label) {
			return "", core.Invalid("host", host, hostWords)
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return "", core.Invalid("host", host, hostWords)
	}
	return name, nil
}

func plainLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isNumber reports a label that makes resolvers read the whole as an address.
func isNumber(s string) bool {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(s, "0123456789") == ""
}

// parsePattern reads HOST[:PORT] of a rule. host may be *.DOMAIN or the name
// of a preset.
func parsePattern(text string) (Target, error) {
	host, port, hasPort := text, "", false
	if i := strings.LastIndexByte(text, ':'); i >= 0 && (strings.Count(text, ":") == 1 || strings.HasSuffix(text[:i], "]")) {
		host, port, hasPort = text[:i], text[i+1:], true
	}
	var t Target
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, core.Invalid("port", port, "1-65535")
		}
		t.Port = uint16(n)
	}
	domain, wild := strings.CutPrefix(host, "*.")
	name, err := cleanHost(domain)
	if err != nil {
		return t, core.Invalid("host", host, hostWords)
	}
	if t.Host = name; !wild {
		return t, nil
	}
	if t.Addr().IsValid() || !strings.Contains(name, ".") { // *.com is half the world
		return t, core.Invalid("host", host, "*. before a domain of two labels or more")
	}
	t.Host = "*." + name
	return t, nil
}
